/* Bad arguments are refused with a sentence, and nothing changes. */
#include "cr_routines.h"

TestSuite(call_args, .init = routines_begin, .fini = routines_end, .timeout = 120);

static void refused_by_all(const char *word, const char *type, const char *id, const char *owner)
{
	MYSQL *db = caller();

	expect_refused(db, "45000", word, "CALL biz_lock_try(%s, %s, %s, 1000, @f, @h, @l)", type,
	               id, owner);
	if (strcmp(owner, "'o'") == 0)
		expect_refused(db, "45000", word, "CALL biz_lock_wait(%s, %s, 10)", type, id);
	expect_refused(db, "45000", word, "CALL biz_lock_renew(%s, %s, %s, 1, 1000, @ok)", type, id,
	               owner);
	expect_refused(db, "45000", word, "CALL biz_lock_release(%s, %s, %s, 1, @ok)", type, id,
	               owner);
}

Test(call_args, keys)
{
	refused_by_all("type has to have 1 to 64 bytes", "NULL", "'k'", "'o'");
	refused_by_all("type has to have 1 to 64 bytes", "''", "'k'", "'o'");
	refused_by_all("type has to have 1 to 64 bytes", "REPEAT('x', 65)", "'k'", "'o'");
	refused_by_all("type has to have 1 to 64 bytes", "REPEAT('\xc3\xa1', 33)", "'k'", "'o'");
	refused_by_all("id has to have 1 to 128 bytes", "'test'", "NULL", "'o'");
	refused_by_all("id has to have 1 to 128 bytes", "'test'", "''", "'o'");
	refused_by_all("id has to have 1 to 128 bytes", "'test'", "REPEAT('x', 129)", "'o'");
	refused_by_all("a byte that is zero", "'test'", "CHAR(65, 0, 66 USING utf8mb4)", "'o'");
	refused_by_all("reserved", "'bizlock-reaper'", "'k'", "'o'");
	cr_assert_eq(all_rows(&world), 0);
}

Test(call_args, owners)
{
	refused_by_all("owner has to have 1 to 64 bytes", "'test'", "'k'", "NULL");
	refused_by_all("owner has to have 1 to 64 bytes", "'test'", "'k'", "''");
	refused_by_all("owner has to have 1 to 64 bytes", "'test'", "'k'", "REPEAT('x', 65)");
	refused_by_all("printable ASCII", "'test'", "'k'", "'a b'");
	refused_by_all("printable ASCII", "'test'", "'k'", "'17@4121.0123456789abcdef@app-1'");
	refused_by_all("printable ASCII", "'test'", "'k'", "'\xc3\xa1'");
	refused_by_all("printable ASCII", "'test'", "'k'", "'a\\n'");
	cr_assert_eq(all_rows(&world), 0);
}

Test(call_args, leases_fences_and_waits)
{
	static const char *const leases[] = {"NULL", "0", "-1", "99", "86400001"};
	MYSQL *db = caller();

	for (size_t i = 0; i < sizeof(leases) / sizeof(leases[0]); i++) {
		expect_refused(db, "45000", "lease has to be 100 to 86400000 milliseconds",
		               "CALL biz_lock_try('test', 'k', 'o', %s, @f, @h, @l)", leases[i]);
		expect_refused(db, "45000", "lease has to be 100 to 86400000 milliseconds",
		               "CALL biz_lock_renew('test', 'k', 'o', 1, %s, @ok)", leases[i]);
	}
	expect_refused(db, "45000", "was not granted",
	               "CALL biz_lock_renew('test', 'k', 'o', NULL, 1000, @ok)");
	expect_refused(db, "45000", "was not granted",
	               "CALL biz_lock_release('test', 'k', 'o', NULL, @ok)");
	expect_refused(db, "45000", "larger than 0",
	               "CALL biz_lock_release('test', 'k', 'o', 0, @ok)");
	expect_refused(db, "45000", "wait has to be", "CALL biz_lock_wait('test', 'k', NULL)");
	expect_refused(db, "45000", "wait has to be", "CALL biz_lock_wait('test', 'k', -1)");
	cr_assert_eq(all_rows(&world), 0);
}

/* It would be the next fence, and the counter would go on from there. */
Test(call_args, an_insert_id_that_the_session_has_set)
{
	MYSQL *db = caller();

	db_run(db, "SET insert_id = 4000000000000000000");
	expect_refused(db, "45000", "insert_id",
	               "CALL biz_lock_try('test', 'k', 'o', 1000, @f, @h, @l)");
}

Test(call_args, the_longest)
{
	MYSQL *db = caller();
	char type[BIZLOCK_TYPE_MAX + 1], id[BIZLOCK_ID_MAX + 1], owner[BIZLOCK_OWNER_NAME_MAX + 1];
	bizlock_key key = {type, id};
	bizlock *b = client(NULL);
	struct granted got;

	memset(type, 't', sizeof(type) - 1);
	memset(id, 'i', sizeof(id) - 1);
	memset(owner, 'o', sizeof(owner) - 1);
	type[sizeof(type) - 1] = id[sizeof(id) - 1] = owner[sizeof(owner) - 1] = '\0';
	got = routine_try(db, key, owner, BIZLOCK_LEASE_MAX_MS);
	cr_assert_gt(got.fence, 0);
	expect(BUSY, b, bizlock_acquire(b, key, &OPTS(.wait_ms = 0), NULL));
	cr_assert(routine_renew(db, key, owner, got.fence, BIZLOCK_LEASE_MIN_MS));
}
