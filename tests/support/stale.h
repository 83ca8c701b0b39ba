/* Rows for the reaper, as their holders would have left them in the tables. Keys are of type
 * "test", ids are "prefix-0000000" and so on. */
#ifndef TEST_STALE_H
#define TEST_STALE_H

#include "db.h"

struct stale_args {
	const char *prefix;
	unsigned rows;
	long long ago_ms; /* negative: in the future */
};

/* Locks of a dead process, whose leases ended at that time. Locks whose leases are still to end are
 * held: stale_leases(db, "live", .rows = 10, .ago_ms = -60000). */
#define stale_leases(db, ...) stale_leases_with((db), (struct stale_args){.prefix = __VA_ARGS__})
void stale_leases_with(MYSQL *db, struct stale_args args);

/* One of these locks, with this very id. */
void stale_lease(MYSQL *db, const char *id, long long ago_ms);

/* The row without which nobody shares a lock, if it is not there. */
void stale_header(MYSQL *db, const char *id);

/* A shared lock's. */
void stale_shared_lease(MYSQL *db, const char *id, unsigned slot, long long ago_ms);

/* The same locks, released, and resting until that time. */
#define stale_rests(db, ...) stale_rests_with((db), (struct stale_args){.prefix = __VA_ARGS__})
void stale_rests_with(MYSQL *db, struct stale_args args);

/* Row locks that were asked for at that time. */
#define stale_row_locks(db, ...)                                                                   \
	stale_row_locks_with((db), (struct stale_args){.prefix = __VA_ARGS__})
void stale_row_locks_with(MYSQL *db, struct stale_args args);

/* The id with that number. Static storage, for sixteen calls. */
const char *stale_id(const char *prefix, unsigned i);

#endif
