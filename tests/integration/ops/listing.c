/* bizlock_each() over all rows that the table allows, which are more than bizlock writes. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(listing, .init = world_begin, .fini = world_end, .timeout = 240);

#define PAGES 3
#define ROWS (PAGES * 256) /* of a page; see bl_page_read() */

static int count(void *arg, const bizlock_info *info)
{
	unsigned *n = arg;

	(void)info;
	return ++*n > 2 * ROWS; /* if so, it would never end */
}

/* Rows whose ids are the SQL expression `id` of the numbers n = 1, 2, ... */
static void makes_rows(const char *id)
{
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, note, "
	       "gmt_create, gmt_modified) "
	       "WITH RECURSIVE numbers AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM numbers "
	       "WHERE n < %d) "
	       "SELECT %s, 'test', 'somebody', 1, UTC_TIMESTAMP(6) + INTERVAL 1 HOUR, '', "
	       "UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) FROM numbers",
	       ROWS, id);
}

static void lists_all(void)
{
	bizlock *b = client(NULL);
	unsigned n = 0, of_type = 0;

	expect(OK, b, bizlock_each(b, NULL, count, &n));
	cr_assert_eq(n, ROWS);
	expect(OK, b, bizlock_each(b, "test", count, &of_type));
	cr_assert_eq(of_type, ROWS);
}

Test(listing, ends_with_keys_of_four_bytes_a_character)
{
	makes_rows("CONCAT(REPEAT(_utf8mb4 x'f09f9492', 120), LPAD(n, 8, '0'))");
	lists_all();
}

Test(listing, ends_with_keys_that_differ_behind_a_nul)
{
	makes_rows("CONCAT('k', CHAR(0 USING utf8mb4), LPAD(n, 8, '0'))");
	lists_all();
}

/* Where the table's order of keys is not that of their bytes, a page may begin where an earlier one
 * did. */
Test(listing, says_so_when_rows_come_out_of_order)
{
	bizlock *b = client(NULL);
	unsigned n = 0;

	db_run(world.admin, "ALTER TABLE biz_lock MODIFY biz_id VARCHAR(128) CHARACTER SET utf8mb4 "
	                    "COLLATE utf8mb4_general_ci NOT NULL");
	makes_rows("CONCAT(IF(n % 2, 'a', 'A'), LPAD(n, 8, '0'))");
	expect(DB, b, bizlock_each(b, NULL, count, &n));
	expect_message(b, "order");
}
