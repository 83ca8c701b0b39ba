/* One text for many lease locks of one client, each its own row. */
#ifndef BL_STORE_ROW_MANY_H
#define BL_STORE_ROW_MANY_H

#include "core/key.h"
#include "store/session/session.h"

/* Enough for few statements, and few enough for the server's limits on the size of a packet and on
 * the memory of the range optimizer. A renewal names each key twice, as hexadecimal digits. */
#define BL_MANY_MAX 2000
#define BL_MANY_BYTES (160 * 1024)
/* MariaDB makes a join of an IN with 1,000 numbers and texts; a row has three. */
#define BL_DROP_MAX 300

struct bl_item {
	struct bl_key key;
	uint64_t fence;
	const char *bell; /* of a set that is released: the name of its doorbell, or NULL */
};

/* Which of them are there still, and (living) not over: how many. A plain read. */
int bl_many_count(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                  bool living, int64_t *ret, struct bl_err *err);

/* Deletes those that nobody else has locked: *ret_dropped of them. */
int bl_many_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                 uint64_t *ret_dropped, struct bl_err *err);

/* Deletes them. ret_released[i]: the hold was there, and is gone now. rings: with the doorbells, as
 * far as the session has them; else, if the items have their names, wakes those that wait. CONN,
 * DB, NOMEM. */
int bl_many_release(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                    bool rings, bool *ret_released, struct bl_err *err);

/* A WHERE, for reading alone: these holds. In a small table the optimizer may prefer to read all
 * of it, and a statement that does so to change rows waits for rows of others. */
void bl_many_holds(struct bl_buf *ret, const struct bl_item *items, size_t n, const char *suffix);

/* To go on with: the owners' common end. It guards against a fence that was given out twice, by
 * a server restored from a backup. */
void bl_many_suffix(struct bl_buf *ret, const char *suffix);

/* One DELETE, of BL_DROP_MAX at most. */
void bl_many_add_drop(struct bl_buf *ret, const struct bl_sql *sql, const struct bl_item *items,
                      size_t n, const char *suffix);

#endif
