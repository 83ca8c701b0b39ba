/* What the texts have in common. */
#ifndef BL_STORE_SQL_PARTS_H
#define BL_STORE_SQL_PARTS_H

#include "store/sql.h"

#define NOW "UTC_TIMESTAMP(6)"
#define OVER "timeout <= " NOW

/* The rows of a shared lock, and those of them that share it: BL_SLOT_PLAIN is neither. */
#define PLAIN "4294967295"
#define SHARED "slot < " PLAIN
#define SHARING "slot BETWEEN 1 AND 4294967294"

/* Of a row that is there, in an INSERT. Each begins with a condition that makes `reentrant` NULL
 * unless it holds: then the whole statement is refused (1048), and all it did is undone.
 * Assignments run from left to right. */

/* The condition: there is none. */
#define IF_NEW "reentrant = NULL"

#define AS_NEW                                                                                     \
	"owner = VALUES(owner), bell = VALUES(bell), note = VALUES(note), gmt_create = "           \
	"VALUES(gmt_create), gmt_modified = VALUES(gmt_modified), timeout = VALUES(timeout)"

/* The condition: its lease is over. The answer's insert id is the new fence, or BL_SQL_FENCES if
 * that is larger; and BL_SQL_RESTED more after a rest. */
#define TAKEN_OVER                                                                                 \
	"reentrant = IF(" OVER ", VALUES(reentrant), NULL), "                                      \
	"taken_from = IF(owner = '', 0, fence), "                                                  \
	"fence = VALUES(fence) + 0 * LAST_INSERT_ID(IF(VALUES(fence) < 4611686018427387904, "      \
	"VALUES(fence), 4611686018427387904) | IF(owner = '', 9223372036854775808, 0)), " AS_NEW

/* Behind "reentrant = IF(", and who has the row until now: that is the condition, and the row goes
 * from giver to owner, as by a release and an acquisition; or stays with its owner, taken from whom
 * it was. The answer's insert id is the new fence. */
#define HANDED_OVER                                                                                \
	" AND timeout > " NOW ", VALUES(reentrant), NULL), "                                       \
	"taken_from = IF(owner <> VALUES(owner), 0, taken_from), "                                 \
	"fence = VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), " AS_NEW

#endif
