/* The names of doorbells, as an administrator computes them. */
#include "cr_test.h"

TestSuite(bell_names, .init = world_begin, .fini = world_end, .timeout = 120);

/* The connection that has the doorbell of a key, 0: none. */
static long long bell_by(const char *prefix, const char *type, const char *id)
{
	return db_number(world.admin,
	                 "SELECT IFNULL(IS_USED_LOCK(CONCAT('bizlock:', LEFT(SHA2(CONCAT_WS("
	                 "CHAR(0 USING utf8mb4), CONVERT(DATABASE() USING utf8mb4), '%sbiz_lock', "
	                 "%s, %s, ''), 256), 32))), 0)",
	                 prefix, db_literal(type), db_literal(id));
}

static void is_that_of_sql(bizlock *b, const char *prefix, bizlock_key key)
{
	cr_assert_eq(bell_by(prefix, key.biz_type, key.biz_id), 0);
	expect(OK, b, bizlock_acquire(b, key, NULL, NULL));
	cr_assert_neq(bell_by(prefix, key.biz_type, key.biz_id), 0, "%s/%s", key.biz_type,
	              key.biz_id);
	expect(OK, b, bizlock_release(b, key, NULL, NULL));
	cr_assert_eq(bell_by(prefix, key.biz_type, key.biz_id), 0);
}

/* 128 bytes of biz_id make it longer than one block of the hash. */
Test(bell_names, can_be_computed_in_sql)
{
	char longest[BIZLOCK_ID_MAX + 1];
	bizlock *b = client(NULL);

	memset(longest, 'x', BIZLOCK_ID_MAX);
	longest[BIZLOCK_ID_MAX] = '\0';
	is_that_of_sql(b, "", (bizlock_key){"order", "4711"});
	is_that_of_sql(b, "", (bizlock_key){"\xc3\xa1rbol", " \xf0\x9f\x94\x92 "});
	is_that_of_sql(b, "", (bizlock_key){"order", longest});
}

Test(bell_names, have_the_tables_prefix_in_them)
{
	bizlock *b = client_new(&world, OPTIONS("table_prefix", "zz_"));

	expect(OK, b, bizlock_migrate(b));
	bizlock_close(b);
	is_that_of_sql(client(OPTIONS("table_prefix", "zz_")), "zz_", (bizlock_key){"order", "1"});
}
