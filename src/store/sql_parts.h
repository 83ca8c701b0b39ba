/* What the texts have in common. */
#ifndef BL_STORE_SQL_PARTS_H
#define BL_STORE_SQL_PARTS_H

#include "store/sql.h"

#define NOW "UTC_TIMESTAMP(6)"
#define OVER "timeout <= " NOW

/* A lease that is longer already stays so. */
#define RENEWED                                                                                    \
	"timeout = GREATEST(%s.timeout, " NOW " + INTERVAL %" PRId64                               \
	" MICROSECOND), gmt_modified = " NOW

#endif
