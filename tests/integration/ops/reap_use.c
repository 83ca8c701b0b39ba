/* bizlock_reap() while the locks are used. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_keyset.h"
#include "cr_numbers.h"
#include "cr_reap.h"
#include "cr_tx.h"

TestSuite(reap_use, .init = tx_world_begin, .fini = tx_world_end, .timeout = 480);

/* ---- between two batches ---------------------------------------------------------------- */

#define ROWS 20 /* one page has all of them, so they are candidates from the beginning */

/* Uses some of the rows before the reaper reaches them. */
static void use_some(void *arg)
{
	bizlock *b = arg;
	bizlock_acquire_opts resting = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_key key = KEY(stale_id("old", 13));

	cr_assert_eq(left_of("biz_lock", "old"), ROWS - 1);
	expect(OK, b, acquire(b, stale_id("old", 10), .lease_ms = 600000));
	expect(OK, b, acquire(b, stale_id("old", 11), .lease_ms = 600000));
	expect(OK, b, bizlock_release(b, KEY(stale_id("old", 11)), NULL, NULL));
	db_run(world.admin,
	       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL 1 DAY WHERE %s",
	       row_where(KEY(stale_id("old", 12))));
	resting.min_hold_ms = 600000;
	expect(OK, b, bizlock_acquire(b, key, &resting, NULL));
	expect(OK, b, bizlock_release(b, key, NULL, NULL));
}

Test(reap_use, what_was_taken_meanwhile_stays)
{
	bizlock *b = client(NULL), *user = client(NULL);
	struct at_progress p = {.at = 1, .act = use_some, .arg = user};
	bizlock_reap_opts opts = with_progress(&p, 1);
	bizlock_reap_result result;

	stale_leases(world.admin, "old", .rows = ROWS, .ago_ms = OLD_MS);
	result = reaped(b, &opts);
	cr_assert_eq(result.leases, ROWS - 4);
	cr_assert_eq(result.passed_over, 4);
	cr_assert_eq(left_of("biz_lock", "old"), 3);
	expect(OK, user, bizlock_verify(user, KEY(stale_id("old", 10)), NULL));
	cr_assert(row_of(&world, KEY(stale_id("old", 12))).there);
	cr_assert(row_of(&world, KEY(stale_id("old", 13))).there);
}

static void rest_again(void *arg)
{
	bizlock *b = arg;

	expect(OK, b, acquire(b, stale_id("old", 10), .lease_ms = 600000));
	db_run(world.admin,
	       "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL 1 DAY WHERE %s",
	       row_where(KEY(stale_id("old", 11))));
}

Test(reap_use, rests_that_began_anew_stay)
{
	bizlock *b = client(NULL), *user = client(NULL);
	struct at_progress p = {.at = 1, .act = rest_again, .arg = user};
	bizlock_reap_opts opts = with_progress(&p, 1);
	bizlock_reap_result result;

	stale_rests(world.admin, "old", .rows = ROWS, .ago_ms = OLD_MS);
	result = reaped(b, &opts);
	cr_assert(result.rests == ROWS - 2 && result.leases == 0 && result.passed_over == 2);
	expect(OK, user, bizlock_verify(user, KEY(stale_id("old", 10)), NULL));
}

static void share_one(void *arg)
{
	bizlock *b = arg;

	expect(OK, b,
	       bizlock_acquire(b, KEY(stale_id("old", 10)),
	                       &OPTS(.flags = BIZLOCK_SHARED, .lease_ms = 600000), NULL));
}

/* The reaper makes rows its own before it looks for sharers. Those that stay are nobody's again. */
Test(reap_use, what_is_shared_meanwhile_stays_free)
{
	bizlock *b = client(NULL), *user = client(NULL);
	struct at_progress p = {.at = 1, .act = share_one, .arg = user};
	bizlock_reap_opts opts = with_progress(&p, 1);
	bizlock_reap_result result;

	stale_rests(world.admin, "old", .rows = ROWS, .ago_ms = OLD_MS);
	result = reaped(b, &opts);
	cr_assert(result.rests == ROWS - 1 && result.passed_over == 1);
	cr_assert_eq(db_number(world.admin, "SELECT owner = '' FROM biz_lock WHERE slot = 0"), 1);
	expect(OK, user, bizlock_verify(user, KEY(stale_id("old", 10)), NULL));
}

/* Takes all locks between two batches: no lock of InnoDB is left then. */
static void take_all(void *arg)
{
	bizlock *b = arg;

	for (unsigned i = 1; i < ROWS; i++)
		expect(OK, b, acquire(b, stale_id("old", i), .lease_ms = 600000));
}

Test(reap_use, holds_nobody_up_between_batches)
{
	bizlock *b = client(NULL), *user = client(NULL);
	struct at_progress p = {.at = 1, .act = take_all, .arg = user};
	bizlock_reap_opts opts = with_progress(&p, 1);
	bizlock_reap_result result;

	stale_leases(world.admin, "old", .rows = ROWS, .ago_ms = OLD_MS);
	result = reaped(b, &opts);
	cr_assert_eq(result.leases, 1);
	cr_assert_eq(result.passed_over, ROWS - 1);
	cr_assert_eq(numbers_of(user).retried_conflict, 0);
}

/* ---- a reaper that stands still ---------------------------------------------------------------
 */

static void hold_replies(void *arg)
{
	proxy_hold_replies(arg, true);
}

/* The statement has been sent, and its answer is kept back. The server has ended the statement
 * nevertheless, so that everybody can use the rows. */
Test(reap_use, holds_nobody_up_in_the_middle_of_a_batch)
{
	struct proxy *proxy = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(proxy, NULL), *user = client(NULL);
	struct at_progress p = {.at = 1, .act = hold_replies, .arg = proxy};
	bizlock_reap_opts opts = with_progress(&p, 100);
	struct reap_thread t;

	stale_leases(world.admin, "old", .rows = 200, .ago_ms = OLD_MS);
	reap_start(&t, b, &opts);
	eventually(left_of("biz_lock", "old") < 100);
	cr_assert(!atomic_load(&t.done));
	for (unsigned i = 0; i < 200; i += 5)
		expect(OK, user, acquire(user, stale_id("old", i), .lease_ms = 600000));
	cr_assert_eq(numbers_of(user).retried_conflict, 0);
	proxy_hold_replies(proxy, false);
	cr_assert_eq(reap_join(&t), BIZLOCK_OK, "%s", t.errmsg);
	proxy_stop(proxy);
}

/* ---- rows that are locked ---------------------------------------------------------- */

/* If the reaper waited for a row, the wait would end with an error after a second, and be counted.
 * expect_purged(b, .leases = 38, .passed_over = 2) */
#define expect_purged(b, ...)                                                                      \
	do {                                                                                       \
		bizlock_reap_opts opts_ = BIZLOCK_REAP_OPTS_INIT;                                  \
		opts_.older_than_ms = 0;                                                           \
		expect_reaped((b), &opts_, __VA_ARGS__);                                           \
		cr_assert_eq(numbers_of(b).retried_conflict, 0, "it waited");                      \
	} while (0)

TX_TEST(reap_use, a_fenced_row_is_passed_over_without_waiting)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	MYSQL *tx = tx_open();

	stale_leases(world.admin, "a", .rows = 5, .ago_ms = OLD_MS);
	stale_leases(world.admin, "z", .rows = 5, .ago_ms = OLD_MS);
	expect(OK, holder, acquire(holder, "k", .lease_ms = busy_lease_ms(holder, 1000)));
	tx_begin(tx, 1);
	expect(OK, holder, bizlock_fence(holder, KEY("k"), NULL, tx));
	lease_is_over("k");
	expect_purged(b, .leases = 10, .passed_over = 1);
	cr_assert(row_of(&world, KEY("k")).there);
	tx_commits(tx, 1);
	expect_purged(b, .leases = 1);
}

/* The optimizer treats a single row differently. */
TX_TEST(reap_use, one_fenced_row_is_passed_over_without_waiting)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	MYSQL *tx = tx_open();

	expect(OK, holder, acquire(holder, "k", .lease_ms = busy_lease_ms(holder, 1000)));
	tx_begin(tx, 1);
	expect(OK, holder, bizlock_fence(holder, KEY("k"), NULL, tx));
	lease_is_over("k");
	expect_purged(b, .passed_over = 1);
	tx_commits(tx, 1);
	expect_purged(b, .leases = 1);
}

Test(reap_use, rows_that_are_being_changed_are_passed_over_without_waiting)
{
	bizlock *b = client(NULL);
	MYSQL *tx;

	stale_leases(world.admin, "old", .rows = 40, .ago_ms = OLD_MS);
	tx = tx_new(); /* a transaction with an older snapshot might not change them */
	db_run(tx, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) + INTERVAL 1 DAY"
	           " WHERE biz_id IN ('old-0000003', 'old-0000017')");
	expect_purged(b, .leases = 38, .passed_over = 2);
	db_run(tx, "ROLLBACK");
	expect_purged(b, .leases = 2);
}

/* ---- no deadlocks ------------------------------------------------------------------ */

#define CROWD 4
#define PURGED 20000

struct crowd {
	bizlock *b;
	unsigned number;
	atomic_uint *at; /* how far the reaper is */
	atomic_bool *stop;
	unsigned taken, refused;
	char error[512];
	pthread_t thread;
};

static bool is_fine(struct crowd *c, int rc)
{
	if (rc == BIZLOCK_OK)
		c->taken++;
	else if (rc == BIZLOCK_BUSY)
		c->refused++;
	else if (!c->error[0])
		snprintf(c->error, sizeof(c->error), "%s: %s", bizlock_err_name(rc),
		         bizlock_errmsg(c->b));
	return rc == BIZLOCK_OK;
}

/* Takes one row, or a set of rows, that the reaper reaches next. */
static void take_near(struct crowd *c, unsigned *random)
{
	unsigned near = atomic_load(c->at) + (unsigned)rand_r(random) % 500;
	bizlock_key keys[8];
	char ids[8][64];

	for (unsigned i = 0; i < 8; i++) {
		snprintf(ids[i], sizeof(ids[i]), "%s", stale_id("old", near + (i * 5) % 8));
		keys[i] = KEY(ids[i]);
	}
	if (c->number % 2) {
		if (is_fine(c, acquire(c->b, ids[0], .lease_ms = 60000)))
			is_fine(c, bizlock_release(c->b, keys[0], NULL, NULL));
	} else {
		bizlock_acquire_opts opts = OPTS(.wait_ms = 0);

		if (is_fine(c, bizlock_acquire_all(c->b, keys, 8, &opts, NULL)))
			is_fine(c, bizlock_release_all(c->b, keys, 8, NULL));
	}
}

static void *use(void *arg)
{
	struct crowd *c = arg;
	unsigned random = c->number + 1;

	while (!atomic_load(c->stop))
		take_near(c, &random);
	return NULL;
}

static int follow(void *arg, const bizlock_reap_result *so_far)
{
	atomic_store((atomic_uint *)arg, (unsigned)so_far->leases);
	return 0;
}

static void purge_among(bizlock *b, struct crowd *crowd, atomic_uint *at, atomic_bool *stop)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	for (unsigned i = 0; i < CROWD; i++) {
		crowd[i] = (struct crowd){.b = client(NULL), .number = i, .at = at, .stop = stop};
		if (pthread_create(&crowd[i].thread, NULL, use, &crowd[i]) != 0)
			die("no thread");
	}
	opts.progress = follow;
	opts.arg = at;
	reaped(b, &opts);
	atomic_store(stop, true);
	for (int i = 0; i < CROWD; i++)
		pthread_join(crowd[i].thread, NULL);
}

/* Sets lock many rows and wait; acquisitions wait for one; renewals skip. */
Test(reap_use, makes_no_deadlocks)
{
	bizlock *b = client(NULL), *renewing = client(NULL);
	struct crowd crowd[CROWD];
	atomic_uint at = 0;
	atomic_bool stop = false;
	struct keyset held;
	long long before;

	deadlocks_are_counted();
	stale_leases(world.admin, "old", .rows = PURGED, .ago_ms = OLD_MS);
	keyset_make(&held, 100, "old");
	expect(OK, renewing, keyset_acquire(renewing, &held, .lease_ms = 12000));
	before = db_deadlocks(world.admin);
	purge_among(b, crowd, &at, &stop);
	for (int i = 0; i < CROWD; i++) {
		cr_assert_str_eq(crowd[i].error, "");
		cr_assert_gt(crowd[i].taken, 0);
	}
	cr_assert_eq(db_deadlocks(world.admin) - before, 0);
	expect_held(renewing, &held, NULL, 1);
	expect(OK, renewing, keyset_release(renewing, &held, NULL));
	cr_assert_eq(left_of("biz_lock", "old"), 0);
}
