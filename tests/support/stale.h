/* Rows for the reaper, put into the tables as those who made them left them. Keys are of
 * type "test", ids "prefix-0000000" and so on. */
#ifndef TEST_STALE_H
#define TEST_STALE_H

#include "db.h"

/* Locks of a dead process whose lease was over so long ago; negative: will be, and
 * the lock is held. */
void stale_leases(MYSQL *db, const char *prefix, unsigned n, long long over_ms);

/* The same, released, and resting until then. */
void stale_rests(MYSQL *db, const char *prefix, unsigned n, long long over_ms);

/* Row locks that were asked for so long ago. */
void stale_row_locks(MYSQL *db, const char *prefix, unsigned n, long long ago_ms);

/* The id with that number. Static storage, sixteen calls deep. */
const char *stale_id(const char *prefix, unsigned i);

#endif
