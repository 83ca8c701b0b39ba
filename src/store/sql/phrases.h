/* Phrases that several SQL texts use. */
#ifndef BL_STORE_SQL_PHRASES_H
#define BL_STORE_SQL_PHRASES_H

#include "store/sql/sql.h"

#define NOW "UTC_TIMESTAMP(6)"
#define OVER "timeout <= " NOW

/* A row that has an owner, or rests (see bl_sql_drop()). */
#define TAKEN "(timeout > " NOW " OR owner <> '')"

/* What bl_row_read() reads of a row `l`. */
#define ROW_READ                                                                                   \
	"l.fence, l.owner, l.reentrant, l.bell, TIMESTAMPDIFF(MICROSECOND, " NOW ", l.timeout)"

/* The rows of sharers. */
#define SHARING "slot > 0"

/* A condition on a row `r` in slot 0. The text after it may add a condition, and closes the
 * parenthesis. */
#define SHARED_BY_SOMEBODY                                                                         \
	"EXISTS(SELECT 1 FROM %s AS s WHERE s.biz_id = r.biz_id AND s.biz_type = r.biz_type AND "  \
	"s." SHARING

/* What an INSERT does to a row that is there. Each phrase has a condition. If the condition does
 * not hold, `reentrant` becomes NULL: the whole statement is refused (1048) and undone. Assignments
 * run from left to right. */

/* The condition never holds: the row must be new. */
#define IF_NEW "reentrant = NULL"

#define AS_NEW                                                                                     \
	"owner = VALUES(owner), bell = VALUES(bell), note = VALUES(note), gmt_create = "           \
	"VALUES(gmt_create), gmt_modified = VALUES(gmt_modified), timeout = VALUES(timeout)"

/* Of a row whose lease is over: the fence of the holder that never released it. A row that is free,
 * or was only a place in line, may remember such a fence: see bl_sql_drop(). */
#define TAKEN_FROM "IF(reentrant = 0, taken_from, fence)"

/* The condition: its lease is over. */
#define TAKEN_OVER                                                                                 \
	"taken_from = " TAKEN_FROM ", reentrant = IF(" OVER ", VALUES(reentrant), NULL), "         \
	"fence = VALUES(fence), " AS_NEW

/* Follows "reentrant = IF(" and the condition, which names the present owner. The row goes from
 * giver to owner, as by a release and an acquisition. If both are the same owner, taken_from stays
 * as it is. The answer's insert id is the new fence. */
#define HANDED_OVER                                                                                \
	" AND timeout > " NOW ", VALUES(reentrant), NULL), "                                       \
	"taken_from = IF(owner <> VALUES(owner), 0, taken_from), "                                 \
	"fence = VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), " AS_NEW

#endif
