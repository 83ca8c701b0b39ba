/* What the texts have in common. */
#ifndef BL_STORE_SQL_PARTS_H
#define BL_STORE_SQL_PARTS_H

#include "store/sql.h"

#define NOW "UTC_TIMESTAMP(6)"
#define OVER "timeout <= " NOW

/* Behind "fence = IF(", and who has the row until now, in an INSERT that may find it: the row goes
 * from giver to owner, as by a release and an acquisition; or stays with its owner, taken from whom
 * it was. Only a fence that is new here is that of VALUES(), so what follows it knows by it whether
 * the giver had the row. */
#define ON_HANDOVER(column)                                                                        \
	", " column " = IF(fence = VALUES(fence), VALUES(" column "), " column ")"
#define HANDED_OVER                                                                                \
	" AND timeout > " NOW ", VALUES(fence) + 0 * LAST_INSERT_ID(VALUES(fence)), fence), "      \
	"taken_from = IF(fence = VALUES(fence) AND owner <> VALUES(owner), 0, "                    \
	"taken_from)" ON_HANDOVER("owner") ON_HANDOVER("reentrant") ON_HANDOVER("timeout")         \
	        ON_HANDOVER("bell") ON_HANDOVER("note") ON_HANDOVER("gmt_create")                  \
	                ON_HANDOVER("gmt_modified")

#endif
