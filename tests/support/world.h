/* What a test works in: a schema of its own with bizlock's tables, a view of it from outside, and
 * clients. A failure to set it up ends the test. */
#ifndef TEST_WORLD_H
#define TEST_WORLD_H

#include <bizlock.h>

#include "db.h"

struct world {
	struct server at;
	char schema[32]; /* also usable as a user name */
	MYSQL *admin;    /* this schema is its default */
};

#define ALL_TABLES "biz_lock, biz_row_lock, biz_lock_schema, biz_run"

/* WHERE: rows of those that have a lock alone; and rows that are nobody's. */
#define SLOT_0 "slot = 0"
#define FREE_ROWS "(owner = '' AND timeout <= UTC_TIMESTAMP(6))"

/* A list of option, value, option, value. */
#define OPTIONS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* A new empty schema; world_migrate() makes the tables. */
void world_make(struct world *w, const struct server *at);
void world_migrate(const struct world *w);
void world_drop(struct world *w);

/* Ends every connection to the schema but w->admin. */
void world_kill_connections(const struct world *w);

/* A client of this schema that is not open. options: may be NULL; they are set after those that
 * lead to the server. */
bizlock *client_new(const struct world *w, const char *const *options);

/* The same, opened. A group that has just begun, on a busy machine, may answer nobody in time at
 * first: so it is tried for a while. */
bizlock *client_open(const struct world *w, const char *const *options);

/* Ends the test unless rc is BIZLOCK_OK. */
void must_work(bizlock *b, int rc, const char *what);

/* The same world, but clients take another way to the server. */
struct world world_by_way_of(const struct world *w, const struct server *at);

/* ---- keys and rows ------------------------------------------------------- */

#define KEY(id) ((bizlock_key){"test", id})

struct row {
	bool there;
	char owner[192], note[256];
	unsigned long long fence;
	unsigned depth;
	long long left_us, timeout_us; /* of the lease; its end, in µs since 1970 */
};

struct row row_of(const struct world *w, bizlock_key key);

/* Of a shared lock: one that has an owner, and of several the one with the highest slot. */
struct row shared_row_of(const struct world *w, bizlock_key key);

/* "biz_id = ... AND biz_type = ...". Static storage, two calls deep. */
const char *row_where(bizlock_key key);

/* That of slot 0 alone: a statement that locks this row locks nothing beside it. */
const char *slot_0_where(bizlock_key key);

/* There is no row of this key, of whatever kind: none that is free, either. */
bool no_row(const struct world *w, bizlock_key key);

/* Rows that are somebody's; and all rows, those that are free, too. */
long long locks_there(const struct world *w);
long long all_rows(const struct world *w);

/* How many connections to this schema are waiting at a doorbell. */
long long doorbell_waiters(const struct world *w);

/* How many sleep until the others have left a shared lock. */
long long shared_sleepers(const struct world *w);

/* How many sleep and watch, and the number of one of them, or 0. */
long long watchers(const struct world *w);
long long watcher(const struct world *w);

/* How many are in a sleep that lasts longer than this, from its beginning to its end. */
long long watchers_for(const struct world *w, unsigned ms);

#endif
