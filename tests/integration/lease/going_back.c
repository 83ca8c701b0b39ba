/* A counter that was set back: what a client gets is larger than all that it has had, or refused.
 */
#include <bizlock_ops.h>

#include "cr_crew.h"
#include "cr_findings.h"
#include "cr_shared.h"

TestSuite(going_back, .init = world_begin, .fini = world_end, .timeout = 240);

#define SET_BACK "set its counter back"

static bizlock_acquire_opts alone_opts(void)
{
	return OPTS(.lease_ms = 60000);
}

/* So that there are fences to go back from. Returns the last one. */
static uint64_t draw(bizlock *b, uint32_t flags, int n)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (int i = 0; i < n; i++) {
		expect(OK, b, try_as(b, "o", flags, 0, &grant));
		expect(OK, b, release_as(b, "o"));
	}
	return grant.fence;
}

static long long rows_in(const char *table)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM %s", table);
}

static void refuses(bizlock *b, uint32_t flags)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(SCHEMA, b, try_as(b, "o", flags, 0, &grant));
	expect_message(b, SET_BACK);
	expect_message(b, "--raise-fences");
	cr_assert_eq(grant.fence, 0);
}

static uint64_t raise_fences(void)
{
	bizlock *b = client_new(&world, NULL);
	uint64_t ret = 0;

	expect(OK, b, bizlock_raise_fences(b, &ret));
	bizlock_close(b);
	return ret;
}

static void goes_on(bizlock *b, uint32_t flags)
{
	uint64_t raised = raise_fences();
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, try_as(b, "o", flags, 0, &grant));
	cr_assert_gt(grant.fence, raised);
	expect(OK, b, release_as(b, "o"));
}

Test(going_back, a_truncated_table_gives_nothing)
{
	bizlock *b = client(NULL), *polls = client(OPTIONS("queue", "off"));

	draw(b, BIZLOCK_NO_RENEW, 5);
	draw(polls, BIZLOCK_NO_RENEW, 5);
	db_run(world.admin, "TRUNCATE biz_lock");
	refuses(b, BIZLOCK_NO_RENEW);
	refuses(polls, BIZLOCK_NO_RENEW);
	cr_assert_eq(locks_there(&world), 0);
	goes_on(b, BIZLOCK_NO_RENEW);
	goes_on(polls, BIZLOCK_NO_RENEW);
}

Test(going_back, a_counter_that_was_set_gives_nothing)
{
	bizlock *b = client(NULL);

	draw(b, BIZLOCK_NO_RENEW, 5);
	db_run(world.admin, "ALTER TABLE biz_lock AUTO_INCREMENT = 1");
	refuses(b, BIZLOCK_NO_RENEW);
	goes_on(b, BIZLOCK_NO_RENEW);
}

/* As an online schema change does it: the table is mostly empty, so the counter is not carried. */
Test(going_back, a_copy_that_is_swapped_in_gives_nothing)
{
	bizlock *b = client(NULL);

	draw(b, BIZLOCK_NO_RENEW, 5);
	db_run(world.admin,
	       "CREATE TABLE fresh LIKE biz_lock; RENAME TABLE biz_lock TO old, fresh TO biz_lock");
	refuses(b, BIZLOCK_NO_RENEW);
	goes_on(b, BIZLOCK_NO_RENEW);
}

Test(going_back, shared_locks_are_refused_too)
{
	bizlock *b = client(NULL);

	draw(b, S, 3);
	draw(b, X, 3);
	db_run(world.admin, "TRUNCATE biz_lock");
	refuses(b, S);
	refuses(b, X);
	cr_assert_eq(rows_where("owner <> ''"), 0);
	goes_on(b, S);
	goes_on(b, X);
}

/* Fences tell holds apart, of owners that had a lock alone and of sharers. */
Test(going_back, one_counter_for_all)
{
	bizlock *b = client(NULL);
	uint64_t alone = draw(b, X, 10), shared = draw(b, S, 1);

	cr_assert_gt(shared, alone);
	cr_assert_gt(draw(b, X, 1), shared);
}

Test(going_back, sets_are_refused_too)
{
	bizlock *b = client(NULL);
	bizlock_key keys[] = {KEY("j"), KEY("k")};
	bizlock_acquire_opts opts = alone_opts();

	draw(b, BIZLOCK_NO_RENEW, 5);
	db_run(world.admin, "TRUNCATE biz_lock");
	expect(SCHEMA, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
	expect_message(b, SET_BACK);
	cr_assert_eq(locks_there(&world), 0);
	raise_fences();
	expect(OK, b, bizlock_acquire_all(b, keys, 2, &opts, NULL));
	expect(OK, b, bizlock_release_all(b, keys, 2, NULL));
}

Test(going_back, batches_are_refused_too)
{
	struct crew c;

	crew_begin(&c, "on");
	draw(c.b, BIZLOCK_NO_RENEW, 3 * CREW);
	crew_line_up(&c);
	db_run(world.admin, "TRUNCATE biz_lock");
	proxy_hold_replies(c.proxy, false);
	for (int i = 0; i < CREW; i++)
		call_join(&c.calls[i]);
	crew_all_are(&c, BIZLOCK_SCHEMA);
	cr_assert_eq(call_join(&c.occupant), BIZLOCK_SCHEMA); /* its answer came late */
	eventually(locks_there(&world) == 0);
	raise_fences();
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_release_held(&c);
	crew_end(&c);
}

/* A client that had larger fences notices; a client that has just been opened cannot. */
Test(going_back, a_new_client_is_not_refused)
{
	bizlock *b = client(NULL);

	draw(b, BIZLOCK_NO_RENEW, 5);
	db_run(world.admin, "TRUNCATE biz_lock");
	works(client(NULL));
}

/* ---- the doctor ---------------------------------------------------------------------------- */

static struct findings look_now(void)
{
	return doctor_of(&world, NULL, BIZLOCK_OK);
}

static void reap(void)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;

	expect(OK, b, bizlock_reap(b, &opts, &result));
}

Test(going_back, the_doctor_remembers_what_a_reaper_saw)
{
	bizlock *b = client(NULL);
	struct findings f;

	draw(b, BIZLOCK_NO_RENEW, 5);
	reap();
	f = look_now();
	expect_finding(&f, "auto_increment", BIZLOCK_GOOD, "");
	db_run(world.admin, "TRUNCATE biz_lock");
	f = look_now();
	expect_finding(&f, "auto_increment", BIZLOCK_BAD, "raise-fences");
	expect_finding(&f, "auto_increment", BIZLOCK_BAD, "the next fence is 1, and was ");
	reap(); /* it does not forget */
	f = look_now();
	expect_finding(&f, "auto_increment", BIZLOCK_BAD, "raise-fences");
	raise_fences();
	f = look_now();
	expect_finding(&f, "auto_increment", BIZLOCK_GOOD, "");
}

Test(going_back, raised_fences_are_remembered)
{
	struct findings f;

	cr_assert_gt(raise_fences(), 1700000000000000u);
	db_run(world.admin, "TRUNCATE biz_lock");
	f = look_now();
	expect_finding(&f, "auto_increment", BIZLOCK_BAD, "raise-fences");
	reap();
	cr_assert_eq(rows_in("biz_row_lock"), 1);
}

Test(going_back, fences_are_raised_beside_clients_at_work)
{
	bizlock *b = client(NULL);
	uint64_t first = raise_fences();

	expect(OK, b, try_as(b, "o", BIZLOCK_NO_RENEW, 0, NULL));
	cr_assert_gt(raise_fences(), first);
	expect(OK, b, bizlock_renew(b, KEY("k"), "o", 60000));
	expect(OK, b, release_as(b, "o"));
	draw(b, BIZLOCK_NO_RENEW, 2);
	cr_assert_eq(all_rows(&world), 0);
}

/* ---- the other end -----------------------------------------------------------------------------
 */

/* 2^62 and more are marks. */
Test(going_back, fences_that_are_too_large_are_refused)
{
	static const char *const counters[] = {"4611686018427387903", "9223372036854775808",
	                                       "9223372036854775813", "18446744073709551600"};
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (int i = 0; i < 4; i++) {
		db_run(world.admin, "ALTER TABLE biz_lock AUTO_INCREMENT = %s", counters[i]);
		if (i == 0) {
			expect(OK, b, try_as(b, "o", BIZLOCK_NO_RENEW, 0, &grant));
			cr_assert_eq(grant.fence, (1ull << 62) - 1);
			db_run(world.admin, "UPDATE biz_lock SET timeout = '2000-01-01'");
		}
		/* By a row that is there, and by a new one. What is refused leaves a free row. */
		for (int again = 0; again < 2; again++) {
			bizlock *other = client_new(&world, NULL);

			expect(SCHEMA, other, bizlock_open(other));
			expect_message(other, "less than 4611686018427387904");
			bizlock_close(other);
			expect(SCHEMA, b, try_as(b, "p", BIZLOCK_NO_RENEW, 0, &grant));
			expect_message(b, "less than 4611686018427387904");
			eventually(locks_there(&world) == 0);
			cr_assert_not(no_row(&world, KEY("k")));
			db_run(world.admin, "DELETE FROM biz_lock");
		}
	}
	db_run(world.admin, "ALTER TABLE biz_lock AUTO_INCREMENT = 1");
	works(client(NULL));
}
