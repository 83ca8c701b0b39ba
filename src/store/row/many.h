/* One text for many lease locks of one client, each its own row. */
#ifndef BL_STORE_ROW_MANY_H
#define BL_STORE_ROW_MANY_H

#include "core/key.h"
#include "store/session/session.h"

/* Enough for few statements, and few enough for the server's limits on the size of a packet and on
 * the memory of the range optimizer. A renewal names each key twice, as hexadecimal digits. */
#define BL_MANY_MAX 2000
#define BL_MANY_BYTES (160 * 1024)
/* MariaDB turns an IN with 1,000 numbers and texts into a join; a row has three of them. */
#define BL_DROP_MAX 300

struct bl_item {
	struct bl_key key;
	uint64_t fence;
	const char *bell; /* of a set that is released: the name of its doorbell, or NULL */
};

/* *ret: how many of the holds are still there; living: with a lease that is not over. A plain
 * read. */
int bl_many_count(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                  bool living, int64_t *ret, struct bl_err *err);

/* Deletes the rows that nobody else has locked; *ret_dropped: how many. */
int bl_many_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                 uint64_t *ret_dropped, struct bl_err *err);

/* Deletes the rows. ret_released[i]: the hold was there, and is gone now. rings: also frees the
 * doorbells, as far as the session has them. Else, if the items name their doorbells, sleepers are
 * woken. CONN, DB, NOMEM. */
int bl_many_release(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                    bool rings, bool *ret_released, struct bl_err *err);

/* A WHERE that selects these holds. Statements that lock rows need FORCE INDEX before it: in a
 * small table the optimizer may prefer to read all rows, and then they wait for rows of others. */
void bl_many_holds(struct bl_buf *ret, const struct bl_item *items, size_t n, const char *suffix);

/* Adds a condition: the end that all owners of a client have in common. It guards against a fence
 * that was given out twice, by a server restored from a backup. */
void bl_many_suffix(struct bl_buf *ret, const char *suffix);

/* One DELETE of BL_DROP_MAX holds at most. */
void bl_many_add_drop(struct bl_buf *ret, const struct bl_sql *sql, const struct bl_item *items,
                      size_t n, const char *suffix);

#endif
