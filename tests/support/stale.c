#define _GNU_SOURCE 1
#include "stale.h"

#include <stdio.h>
#include <string.h>

#define NUMBERS_MAX 4096

const char *stale_id(const char *prefix, unsigned i)
{
	static _Thread_local char ids[16][64];
	static _Thread_local unsigned next;
	char *id = ids[next++ % 16];

	snprintf(id, sizeof(ids[0]), "%s-%07u", prefix, i);
	return id;
}

/* A table of the numbers below n: a product of digits, for servers that know no
 * sequences. */
static void numbers_below(unsigned n, char ret[NUMBERS_MAX])
{
	char sum[256] = "0", from[NUMBERS_MAX / 2] = "";
	unsigned places = 0, unit = 1;

	do {
		size_t at = strlen(sum), end = strlen(from);

		snprintf(sum + at, sizeof(sum) - at, " + %u * d%u.n", unit, places);
		snprintf(from + end, sizeof(from) - end,
		         "%s(SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3"
		         " UNION ALL SELECT 4 UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL"
		         " SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9) AS d%u",
		         places ? ", " : "", places);
		places++;
		unit *= 10;
	} while (unit < n);
	snprintf(ret, NUMBERS_MAX, "(SELECT %s AS i FROM %s HAVING i < %u) AS numbers", sum, from,
	         n);
}

#define DEAD "1@2.0123456789abcdef@gone"

static void locks(MYSQL *db, struct stale_args args, const char *owner)
{
	char numbers[NUMBERS_MAX];

	numbers_below(args.rows, numbers);
	db_run(db,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) SELECT CONCAT('%s-', LPAD(i, 7, '0')), 'test', '%s', %d,"
	       " UTC_TIMESTAMP(6) - INTERVAL %lld MICROSECOND, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6) FROM %s ORDER BY i",
	       args.prefix, owner, *owner != '\0', args.ago_ms * 1000, numbers);
}

void stale_leases_with(MYSQL *db, struct stale_args args)
{
	locks(db, args, DEAD);
}

void stale_lease(MYSQL *db, const char *id, long long ago_ms)
{
	db_run(db,
	       "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout, gmt_create,"
	       " gmt_modified) VALUES (%s, 'test', '" DEAD "', 1,"
	       " UTC_TIMESTAMP(6) - INTERVAL %lld MICROSECOND, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6))",
	       db_literal(id), ago_ms * 1000);
}

void stale_header(MYSQL *db, const char *id)
{
	db_run(db,
	       "INSERT IGNORE INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES (%s, 'test', '', 0, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
	       db_literal(id));
}

void stale_shared_lease(MYSQL *db, const char *id, unsigned slot, long long ago_ms)
{
	if (slot > 0)
		stale_header(db, id);
	db_run(db,
	       "REPLACE INTO biz_lock (biz_id, biz_type, slot, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES (%s, 'test', %u, '" DEAD "', 1,"
	       " UTC_TIMESTAMP(6) - INTERVAL %lld MICROSECOND, UTC_TIMESTAMP(6),"
	       " UTC_TIMESTAMP(6))",
	       db_literal(id), slot, ago_ms * 1000);
}

void stale_rests_with(MYSQL *db, struct stale_args args)
{
	locks(db, args, "");
}

void stale_row_locks_with(MYSQL *db, struct stale_args args)
{
	char numbers[NUMBERS_MAX];

	numbers_below(args.rows, numbers);
	db_run(db,
	       "INSERT INTO biz_row_lock (biz_id, biz_type, gmt_create) SELECT"
	       " CONCAT('%s-', LPAD(i, 7, '0')), 'test',"
	       " UTC_TIMESTAMP(6) - INTERVAL %lld MICROSECOND FROM %s ORDER BY i",
	       args.prefix, args.ago_ms * 1000, numbers);
}
