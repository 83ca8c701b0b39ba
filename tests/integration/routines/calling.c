/* Routines and clients want the same locks. */

#include <signal.h>

#include "cr_routines.h"

TestSuite(calling, .init = routines_begin, .fini = routines_end, .timeout = 120);

Test(calling, excludes_clients)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got = routine_try(db, KEY("k"), "web-17", LONG_MS);

	cr_assert_gt(got.fence, 0);
	cr_assert_str_eq(got.holder, "web-17@sql");
	expect(BUSY, b, acquire(b, "k"));
	expect_message(b, "held by web-17@sql");
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	works(b);
}

Test(calling, is_excluded_by_clients)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct granted got;

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS, .grant = &grant));
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_eq(got.fence, 0);
	cr_assert_str_eq(got.holder, row_of(&world, KEY("k")).owner);
	cr_assert_gt(got.left_ms, LONG_MS - 60000);
	cr_assert_leq(got.left_ms, LONG_MS);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_gt(got.fence, grant.fence);
}

/* Two programs may have chosen one name. */
Test(calling, an_owner_is_excluded_by_its_namesake)
{
	MYSQL *db = caller(), *other = caller();
	struct granted got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	struct granted again = routine_try(db, KEY("k"), "web-17", LONG_MS);

	cr_assert_gt(got.fence, 0);
	cr_assert_eq(again.fence, 0);
	cr_assert_str_eq(again.holder, "web-17@sql");
	cr_assert_eq(routine_try(other, KEY("k"), "web-17", LONG_MS).fence, 0);
}

Test(calling, a_client_takes_over_when_the_lease_is_over)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct granted got = routine_try(db, KEY("k"), "web-17", 300);

	expect(OK, b, acquire(b, "k", .wait_ms = -1, .lease_ms = LONG_MS, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_gt(grant.fence, got.fence);
	cr_assert(!routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert(!routine_release(db, KEY("k"), "web-17", got.fence));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

Test(calling, a_routine_takes_over_when_the_lease_is_over)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct granted got;

	expect(OK, b, acquire(b, "k", .lease_ms = 300, .grant = &grant));
	got = routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS);
	cr_assert_gt(got.fence, grant.fence);
	cr_assert_eq(db_number(world.admin, "SELECT taken_from FROM biz_lock"),
	             (long long)grant.fence);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	cr_assert(no_row(&world, KEY("k")));
}

Test(calling, only_the_owner_with_its_fence_renews_and_releases)
{
	MYSQL *db = caller();
	struct granted got = routine_try(db, KEY("k"), "web-17", 30000);
	long long end = row_of(&world, KEY("k")).timeout_us;

	cr_assert(!routine_renew(db, KEY("k"), "web-18", got.fence, LONG_MS));
	cr_assert(!routine_renew(db, KEY("k"), "web-17", got.fence + 1, LONG_MS));
	cr_assert(!routine_renew(db, KEY("K"), "web-17", got.fence, LONG_MS));
	cr_assert(!routine_release(db, KEY("k"), "web-18", got.fence));
	cr_assert(!routine_release(db, KEY("k"), "web-17", got.fence + 1));
	cr_assert_eq(row_of(&world, KEY("k")).timeout_us, end);
	cr_assert(routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert_gt(row_of(&world, KEY("k")).timeout_us, end);
	cr_assert_eq(row_of(&world, KEY("k")).fence, got.fence);
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	cr_assert(no_row(&world, KEY("k")));
}

/* It is told, and the row goes all the same. */
Test(calling, a_lease_that_is_over_is_neither_renewed_nor_given_back)
{
	MYSQL *db = caller();
	struct granted got = routine_try(db, KEY("k"), "web-17", 100);

	lease_is_over("k");
	cr_assert(!routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert(!routine_release(db, KEY("k"), "web-17", got.fence));
	cr_assert(no_row(&world, KEY("k")));
}

Test(calling, keys_are_compared_byte_for_byte)
{
	static const char *const ids[] = {"a", "A", "a ", "\xc3\xa1", "\xf0\x9f\x94\x92"};
	MYSQL *db = caller();
	bizlock *b = client(NULL);

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		cr_assert_gt(routine_try(db, KEY(ids[i]), "web-17", LONG_MS).fence, 0, "%s",
		             ids[i]);
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		expect(BUSY, b, acquire(b, ids[i]));
}

/* The program's own alphabet: the same key for all. */
Test(calling, a_connection_in_latin1_means_the_same_key)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);

	cr_assert_eq(mysql_set_character_set(db, "latin1"), 0);
	db_run(db, "CALL biz_lock_try('test', '\xe1', 'web-17', 60000, @fence, @holder, @left)");
	cr_assert_gt(db_number(db, "SELECT @fence"), 0);
	expect(BUSY, b, acquire(b, "\xc3\xa1"));
}

Test(calling, a_rest_is_respected)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.min_hold_ms = LONG_MS);
	struct granted got;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_eq(got.fence, 0);
	cr_assert_str_eq(got.holder, "");
	cr_assert_gt(got.left_ms, 0);
}

Test(calling, another_program_may_have_broken_it)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got = routine_try(db, KEY("k"), "web-17", LONG_MS);

	expect(OK, b, bizlock_break(b, KEY("k"), got.fence));
	cr_assert_eq(db_number(db, "SELECT 1"), 1); /* its connection was not ended */
	cr_assert(!routine_renew(db, KEY("k"), "web-17", got.fence, LONG_MS));
	cr_assert_gt(routine_try(db, KEY("k"), "web-18", LONG_MS).fence, got.fence);
}

/* ---- a doorbell whose owner hangs -------------------------------------------------------- */

Test(calling, a_contender_that_hangs_is_passed)
{
	struct peer peer = peer_start(&world, NULL);
	MYSQL *db = caller();

	expect_answer(OK, peer_acquire(&peer, "k", .lease_ms = LONG_MS));
	peer_signal(&peer, SIGSTOP);
	db_run(world.admin, "DELETE FROM biz_lock");
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	db_run(world.admin, "DELETE FROM biz_lock");
	cr_assert_gt(routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS).fence, 0);
	peer_end(&peer);
}

Test(calling, no_doorbell_is_kept)
{
	MYSQL *db = caller();
	struct granted got = routine_wait(db, KEY("k"), "web-17", LONG_MS, 1000);

	cr_assert_gt(got.fence, 0);
	routine_wait(db, KEY("k"), "web-18", LONG_MS, 100);
	cr_assert_eq(db_number(db, "SELECT COUNT(*) FROM biz_lock WHERE bell <> 0"), 0);
	cr_assert_eq(db_number(db,
	                       "SELECT IFNULL(IS_USED_LOCK(CONCAT('bizlock:', LEFT(SHA2(CONCAT_WS("
	                       "CHAR(0 USING utf8mb4), CONVERT(DATABASE() USING utf8mb4), "
	                       "'biz_lock', 'test', 'k', ''), 256), 32))), 0)"),
	             0);
}
