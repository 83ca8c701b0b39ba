/* A fenced row cannot be renewed while its transaction is open. That must disturb nobody else. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(fenced_renewal, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define HOLDS 50
#define FENCED 17 /* somewhere in the middle of what is due together */
#define LEASE_MS 4500u
#define SOON_MS 10000
#define PROMPT_MS 5000 /* on a machine that is busy; far less than two network timeouts */
#define OPEN_FENCE "fenced by a transaction that is open"

static const char *id_of(int i)
{
	static _Thread_local char id[16];

	snprintf(id, sizeof(id), "k%02d", i);
	return id;
}

static unsigned losses_of_others(struct losses *l)
{
	unsigned others = 0;

	for (unsigned i = 0; i < atomic_load(&l->count); i++)
		others += strcmp(l->list[i].id, id_of(FENCED)) != 0;
	return others;
}

static void hold_renewed(bizlock *b, const char *id, uint32_t lease_ms)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = SOON_MS, .lease_ms = lease_ms);

	expect(OK, b, bizlock_acquire(b, KEY(id), &opts, NULL));
}

static bool others_are_held(bizlock *b)
{
	for (int i = 0; i < HOLDS; i++)
		if (i != FENCED && bizlock_left_ms(b, KEY(id_of(i)), NULL) <= 0)
			return false;
	return true;
}

/* For two leases. The rows are looked at as well: a client may believe in less than the row says,
 * never in more. */
static void delays_nobody(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue)), *stranger = client(NULL);
	static struct losses losses;
	MYSQL *tx = tx_open();
	uint32_t lease_ms = busy_lease_ms(b, LEASE_MS);
	int64_t start;

	for (int i = 0; i < HOLDS; i++)
		hold_renewed(b, id_of(i), lease_ms);
	losses_watch(&losses, b);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY(id_of(FENCED)), NULL, tx));
	start = now_ms();
	steadily(others_are_held(b), 2 * lease_ms);
	works(b);
	cr_assert_eq(losses_of_others(&losses), 0);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM biz_lock"
	                       " WHERE timeout > UTC_TIMESTAMP(6) AND %s",
	                       "biz_type = 'test'"),
	             HOLDS - 1, "after %lld ms", (long long)(now_ms() - start));
	expect(BUSY, stranger, acquire(stranger, id_of(FENCED)));
	tx_commits(tx, 1);
	for (int i = 0; i < HOLDS; i++)
		if (i != FENCED)
			expect(OK, b, bizlock_release(b, KEY(id_of(i)), NULL, NULL));
	expect(OK, stranger, acquire(stranger, id_of(FENCED), .wait_ms = SOON_MS));
}

TX_TEST(fenced_renewal, of_one_delays_none_of_the_others)
{
	delays_nobody("auto");
}

TX_TEST(fenced_renewal, of_one_delays_none_of_the_others_without_the_queue)
{
	deadlocks_may_happen();
	delays_nobody("off");
}

/* A transaction that is shorter than the lease costs the hold nothing: what could
 * not be renewed while it was open is renewed after it. */
TX_TEST(fenced_renewal, goes_on_after_a_short_transaction)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	hold_renewed(b, "k", 2 * LEASE_MS);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	eventually(row_of(&world, KEY("k")).left_us < 1500 * (long long)LEASE_MS);
	tx_commits(tx, 1);
	steadily(bizlock_left_ms(b, KEY("k"), NULL) > 0, 2 * LEASE_MS);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* The holder gives the lock back too early, before its transaction has ended. The row is removed as
 * soon as it can be. */
TX_TEST(fenced_renewal, is_no_place_where_a_release_hangs)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	MYSQL *tx = tx_open();
	int64_t start;

	hold_renewed(b, "k", LEASE_MS);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	start = now_ms();
	expect(BUSY, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect_message(b, OPEN_FENCE);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(BUSY, stranger, acquire(stranger, "k"));
	tx_commits(tx, 1);
	expect(OK, stranger, acquire(stranger, "k", .wait_ms = SOON_MS));
}

/* ---- the owner itself, once more ------------------------------------------------- */

/* "k", held and fenced by a transaction that is open. */
static bizlock *fenced_holder(MYSQL **ret_tx, uint32_t lease_ms, const char *owner)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock *b = client(NULL);

	opts.lease_ms = lease_ms;
	opts.owner = owner;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	*ret_tx = tx_new();
	expect(OK, b, bizlock_fence(b, KEY("k"), owner, *ret_tx));
	return b;
}

TX_TEST(fenced_renewal, a_reentry_that_tries_once_says_so_at_once)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL);
	int64_t start = now_ms();

	expect(BUSY, b, acquire(b, "k"));
	expect_message(b, OPEN_FENCE);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	db_run(tx, "COMMIT");
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

TX_TEST(fenced_renewal, a_reentry_waits_no_longer_than_it_was_told)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL);
	int64_t start = now_ms();

	expect(TIMEOUT, b, acquire(b, "k", .wait_ms = 1000));
	expect_message(b, OPEN_FENCE);
	cr_assert_lt(now_ms() - start, 1000 + PROMPT_MS);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

TX_TEST(fenced_renewal, a_reentry_waits_for_the_transaction)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, "task-1");
	struct call call;

	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	steadily(!call.done, 500);
	expect(OK, b, bizlock_verify(b, KEY("k"), "task-1"));
	db_run(tx, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(call.grant.depth, 2);
}

TX_TEST(fenced_renewal, a_reentry_ends_when_the_lease_does)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, LEASE_MS, NULL);
	int64_t start = now_ms();

	expect(LOST, b, acquire(b, "k", .wait_ms = -1));
	cr_assert_lt(now_ms() - start, LEASE_MS + PROMPT_MS);
}

/* The same for a set, of keys that are held and of one that is new. */
TX_TEST(fenced_renewal, a_set_with_it_waits_no_longer_than_it_was_told)
{
	const bizlock_key keys[] = {KEY("k"), KEY("new")};
	bizlock_acquire_opts opts = OPTS(.wait_ms = 0);
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL);
	int64_t start = now_ms();

	expect(BUSY, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
	expect_message(b, OPEN_FENCE);
	opts.wait_ms = 500;
	expect(TIMEOUT, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
	cr_assert_lt(now_ms() - start, 500 + 2 * PROMPT_MS);
	db_run(tx, "COMMIT");
	opts.wait_ms = SOON_MS;
	expect(OK, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
	expect(OK, b, bizlock_release_all(b, keys, 2, NULL));
}

TX_TEST(fenced_renewal, a_renewal_says_so_at_once_and_leaves_the_lease_as_it_is)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL);
	int64_t start = now_ms();

	expect(BUSY, b, bizlock_renew(b, KEY("k"), NULL, 1000));
	expect_message(b, OPEN_FENCE);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 10000);
	db_run(tx, "COMMIT");
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 1000));
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 1000);
}

TX_TEST(fenced_renewal, a_release_of_many_gives_the_others_back)
{
	const bizlock_key keys[] = {KEY("a"), KEY("k"), KEY("z")};
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL), *stranger = client(NULL);
	long long bell;
	int64_t start;

	expect(OK, b, acquire(b, "a", .lease_ms = 60000));
	expect(OK, b, acquire(b, "kept", .lease_ms = 60000));
	expect(OK, b, acquire(b, "z", .lease_ms = 60000));
	bell = db_number(world.admin, "SELECT bell FROM biz_lock WHERE %s", row_where(KEY("kept")));
	start = now_ms();
	expect(BUSY, b, bizlock_release_all(b, keys, 3, NULL));
	cr_assert_lt(now_ms() - start, PROMPT_MS);
	cr_assert(!row_of(&world, KEY("a")).there && !row_of(&world, KEY("z")).there);
	cr_assert_eq(
	        db_number(world.admin,
	                  "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %lld",
	                  bell),
	        1, "the doorbells of others are where they were");
	db_run(tx, "COMMIT");
	expect(OK, stranger, acquire(stranger, "k", .wait_ms = SOON_MS));
}

static atomic_bool over;

/* Each try locks the row for a moment. Without a pause the row would be locked for most of the time
 * on a slow machine. */
static void *tries_all_the_time(void *b)
{
	while (!over) {
		(void)acquire_as(b, "k", "task-1");
		pause_ms(2);
	}
	return NULL;
}

/* After the transaction has ended, nothing is refused because of it, even while other contenders
 * lock the row again and again for a moment. */
TX_TEST(fenced_renewal, of_a_transaction_that_is_over_is_forgotten)
{
	MYSQL *tx;
	bizlock *b = fenced_holder(&tx, 60000, NULL);
	bizlock *stranger = client(OPTIONS("queue", "off"));
	pthread_t thread;

	deadlocks_may_happen();
	db_run(tx, "COMMIT");
	cr_assert_eq(pthread_create(&thread, NULL, tries_all_the_time, stranger), 0);
	for (int i = 0; i < 100; i++) {
		tx_begin(tx, 0);
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
		db_run(tx, "COMMIT");
		expect(OK, b, acquire(b, "k"));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
	over = true;
	pthread_join(thread, NULL);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* A user's own statement locks the row, without bizlock. To find that out takes a second. */
TX_TEST(fenced_renewal, a_row_that_was_locked_by_hand_is_told_in_time)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();
	int64_t start;

	hold_renewed(b, "k", 60000);
	db_run(tx, "START TRANSACTION");
	db_run(tx, "UPDATE biz_lock SET note = 'x' WHERE %s", row_where(KEY("k")));
	start = now_ms();
	expect(BUSY, b, acquire(b, "k"));
	expect_message(b, OPEN_FENCE);
	cr_assert_lt(now_ms() - start, PROMPT_MS);
}

/* ---- short transactions, one over the other ------------------------------------------------- */

#define WORKERS 4
#define SHORT_MS 60

struct worker {
	pthread_t thread;
	bizlock *b;
	MYSQL *tx;
	unsigned done;
};

static void *works_in_short_transactions(void *arg)
{
	struct worker *w = arg;

	while (!over) {
		db_run(w->tx, "START TRANSACTION");
		if (bizlock_fence(w->b, KEY("k"), "task-1", w->tx) != BIZLOCK_OK)
			die("%s", bizlock_errmsg(w->b));
		pause_ms(SHORT_MS);
		db_run(w->tx, "COMMIT");
		w->done++;
	}
	return NULL;
}

/* There is no moment at which no transaction has locked the row. */
Test(fenced_renewal, is_not_starved_by_short_transactions)
{
	bizlock *b = client(NULL);
	struct worker workers[WORKERS];

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = 4000, .owner = "task-1"), NULL));
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = (struct worker){.b = b, .tx = tx_open()};
		cr_assert_eq(pthread_create(&workers[i].thread, NULL, works_in_short_transactions,
		                            &workers[i]),
		             0);
		pause_ms(SHORT_MS / WORKERS);
	}
	steadily(bizlock_left_ms(b, KEY("k"), "task-1") > 0, 3 * 4000);
	over = true;
	for (int i = 0; i < WORKERS; i++) {
		pthread_join(workers[i].thread, NULL);
		cr_assert_gt(workers[i].done, 10);
	}
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
}
