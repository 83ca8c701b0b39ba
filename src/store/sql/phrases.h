/* What the texts have in common. */
#ifndef BL_STORE_SQL_PHRASES_H
#define BL_STORE_SQL_PHRASES_H

#include "store/sql/sql.h"

#define NOW "UTC_TIMESTAMP(6)"
#define OVER "timeout <= " NOW

/* A row that is somebody's, or rests. */
#define TAKEN "(timeout > " NOW " OR owner <> '')"

/* What bl_row_read() reads of a row `l`. */
#define ROW_READ                                                                                   \
	"l.fence, l.owner, l.reentrant, l.bell, TIMESTAMPDIFF(MICROSECOND, " NOW ", l.timeout)"

/* The rows of those that share a lock. */
#define SHARING "slot > 0"

/* Of a row `r`, in slot 0. What follows may add a condition, and has the last parenthesis. */
#define SHARED_BY_SOMEBODY                                                                         \
	"EXISTS(SELECT 1 FROM %s AS s WHERE s.biz_id = r.biz_id AND s.biz_type = r.biz_type AND "  \
	"s." SHARING

/* Of a row that is there, in an INSERT. Each has a condition that makes `reentrant` NULL unless it
 * holds: then the whole statement is refused (1048), and all it did is undone.
 * Assignments run from left to right. */

/* The condition: there is none. */
#define IF_NEW "reentrant = NULL"

#define AS_NEW                                                                                     \
	"owner = VALUES(owner), bell = VALUES(bell), note = VALUES(note), gmt_create = "           \
	"VALUES(gmt_create), gmt_modified = VALUES(gmt_modified), timeout = VALUES(timeout)"

/* Of a row that is over: the fence of the holder that never released it. A row that is free, or was
 * only a place in line, may remember one: see bl_sql_drop(). */
#define TAKEN_FROM "IF(reentrant = 0, taken_from, fence)"

/* The condition: its lease is over. */
#define TAKEN_OVER                                                                                 \
	"taken_from = " TAKEN_FROM ", reentrant = IF(" OVER ", VALUES(reentrant), NULL), "         \
	"fence = VALUES(fence), " AS_NEW

/* Behind "reentrant = IF(", and who has the row until now: that is the condition, and the row goes
 * from giver to owner, as by a release and an acquisition; or stays with its owner, taken from whom
 * it was. The answer's insert id is the new fence. */
#define HANDED_OVER                                                                                \
	" AND timeout > " NOW ", VALUES(reentrant), NULL), "                                       \
	"taken_from = IF(owner <> VALUES(owner), 0, taken_from), "                                 \
	"fence = VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), " AS_NEW

#endif
