/* Routines want alone what clients share. */
#include "cr_routines.h"
#include "cr_tx.h"

TestSuite(call_shared, .init = routines_begin, .fini = routines_end, .timeout = 120);

static int share(bizlock *b, const char *owner, uint32_t lease_ms)
{
	return acquire_with(b, BIZLOCK_SHARED | BIZLOCK_NO_RENEW,
	                    (struct acquire_args){.id = "k", .lease_ms = lease_ms, .owner = owner});
}

Test(call_shared, sharers_are_waited_for)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got;

	expect(OK, b, share(b, "one", LONG_MS));
	expect(OK, b, share(b, "two", LONG_MS));
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_eq(got.fence, 0);
	cr_assert(strstr(got.holder, "one@") || strstr(got.holder, "two@"), "%s", got.holder);
	cr_assert_gt(got.left_ms, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), "one", NULL));
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), "two", NULL));
	got = routine_try(db, KEY("k"), "web-17", LONG_MS);
	cr_assert_gt(got.fence, 0);
	expect(BUSY, b, share(b, "one", LONG_MS));
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	expect(OK, b, share(b, "one", LONG_MS));
}

Test(call_shared, sharers_whose_leases_are_over_go)
{
	MYSQL *db = caller();
	bizlock *b = client(NULL);
	struct granted got;

	expect(OK, b, share(b, "one", 100));
	expect(OK, b, share(b, "two", 100));
	got = routine_wait(db, KEY("k"), "web-17", LONG_MS, PATIENCE_MS);
	cr_assert_gt(got.fence, 0);
	cr_assert_eq(all_rows(&world), 1);
	cr_assert(routine_release(db, KEY("k"), "web-17", got.fence));
	cr_assert_eq(all_rows(&world), 0);
}

/* Who has fenced its hold commits first; then the lock is free. */
static void fenced_is_respected(uint32_t flags)
{
	MYSQL *db = caller(), *tx = caller();
	bizlock *b = client(NULL);

	expect(OK, b,
	       acquire_with(b, flags | BIZLOCK_NO_RENEW,
	                    (struct acquire_args){.id = "k", .lease_ms = 1000}));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	eventually(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE owner <> '' AND"
	                                  " timeout > UTC_TIMESTAMP(6)") == 0);
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	cr_assert_eq(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
	db_run(tx, "COMMIT");
	cr_assert_gt(routine_try(db, KEY("k"), "web-17", LONG_MS).fence, 0);
}

Test(call_shared, a_fenced_hold_is_not_taken_over)
{
	fenced_is_respected(0);
}

Test(call_shared, a_fenced_sharer_is_not_cleared)
{
	fenced_is_respected(BIZLOCK_SHARED);
}
