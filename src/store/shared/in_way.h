/* The SQL and the judgement that the files of shared locks share. */
#ifndef BL_STORE_SHARED_IN_WAY_H
#define BL_STORE_SHARED_IN_WAY_H

#include "store/shared/sharers.h"
#include "store/sql/phrases.h"

/* "EXISTS(...)": a row of this wish's lock for which `rows` holds. */
void bl_shared_add_exists(struct bl_session *s, const struct bl_wish *wish, const char *rows);
void bl_shared_add_count(struct bl_session *s, const struct bl_wish *wish); /* of slots taken */
void bl_shared_add_owner(struct bl_session *s, const struct bl_wish *wish); /* a literal */

/* A condition: others are in the way of the first in line, who has slot 0 if the wish is
 * exclusive. */
void bl_shared_add_in_way(struct bl_session *s, const struct bl_wish *wish);

/* An INSERT of a row in slot @bizlock_slot, up to what becomes of a row that is there.
 * @bizlock_slot NULL: the INSERT is refused, and no row is touched. */
void bl_shared_add_values(struct bl_session *s, const struct bl_shared_go *go);

/* The statement that reads rows which may be in the way: all slots, or slot 0 and `slot`. */
#define BL_SHARED_CHOICE "IFNULL(@bizlock_slot, 0)"
enum { BL_SHARED_COLUMNS = 10 };
void bl_shared_add_look(struct bl_session *s, const struct bl_wish *wish, const char *slot);

/* Judges the rows of that statement. dead: collects rows whose leases are over, or NULL. */
struct bl_shared_dead {
	struct {
		uint32_t slot;
		uint64_t fence;
		bool held; /* it was more than a place in line */
	} rows[64];        /* more of them are cleared by the next look */
	size_t count;
	struct bl_row row; /* the last of them */
};
void bl_shared_judge(const struct bl_wish *wish, struct bl_rows *rows, struct bl_shared_seen *ret,
                     struct bl_shared_dead *dead);

#endif
