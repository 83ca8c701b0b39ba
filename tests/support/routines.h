/* Calls of the routines of sql/routines.sql, as a program in another language makes them. A server
 * that refuses a call ends the test, unless it is to be asked for that. */
#ifndef TEST_ROUTINES_H
#define TEST_ROUTINES_H

#include <stdint.h>

#include "world.h"

/* world_migrate(), and the routines. */
void world_migrate_routines(const struct world *w);

struct granted {
	uint64_t fence;   /* 0: not granted */
	char holder[192]; /* "NULL": it is NULL */
	int64_t left_ms;
};

struct granted routine_try(MYSQL *db, bizlock_key key, const char *owner, int64_t lease_ms);

/* Waits for its turn, and tries, until it has the lock or wait_ms are over. */
struct granted routine_wait(MYSQL *db, bizlock_key key, const char *owner, int64_t lease_ms,
                            int64_t wait_ms);
bool routine_renew(MYSQL *db, bizlock_key key, const char *owner, uint64_t fence, int64_t lease_ms);
bool routine_release(MYSQL *db, bizlock_key key, const char *owner, uint64_t fence);

#endif
