/* Reads the option files of the MySQL world ("my.cnf"): [groups], key = value,
 * key alone, '-' and '_' alike, # and ; comments, quotes, the escapes
 * \b \t \n \r \\ \s, "!include FILE" and "!includedir DIR" (*.cnf, sorted). */
#ifndef BL_BASE_OPTFILE_H
#define BL_BASE_OPTFILE_H

#include <stdbool.h>

#include "base/err.h"

/* Called for each entry of a wanted group, in file order; `value` NULL: the key
 * stands alone. In keys '-' is replaced by '_'. Any result but OK ends the reading. */
typedef int bl_optfile_fn(void *arg, const char *group, const char *key, const char *value,
                          struct bl_err *err);

/* `groups`: NULL-terminated. A missing file is skipped unless must_exist. INVALID,
 * naming file and line: a file that is unreadable, not regular, larger than 1 MiB,
 * or nested deeper than 10 includes; a file that everybody may write to, because it
 * cannot be trusted; a line that is none of the above. */
int bl_optfile_read(const char *path, bool must_exist, const char *const *groups, bl_optfile_fn *fn,
                    void *arg, struct bl_err *err);

#endif
