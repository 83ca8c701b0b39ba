/* Reads the option files of the MySQL world ("my.cnf"): [groups], key = value,
 * key alone, '-' and '_' alike, # and ; comments, quotes, the escapes
 * \b \t \n \r \\ \s, "!include FILE" and "!includedir DIR" (*.cnf, sorted). */
#ifndef BL_BASE_OPTFILE_H
#define BL_BASE_OPTFILE_H

#include <stdbool.h>

#include "base/err.h"

/* Called for each entry of a wanted group, in file order; `value` NULL: key
 * alone. Keys come with '-' turned into '_'. Any answer but OK ends the reading. */
typedef int bl_optfile_fn(void *arg, const char *group, const char *key, const char *value,
                          struct bl_err *err);

/* `groups`: NULL-terminated. A file that is not there is skipped unless
 * must_exist. INVALID, naming file and line: unreadable, not a regular file,
 * larger than 1 MiB, nested deeper than 10 includes, a line that is none of the
 * above; and a file that everybody may write to, because it is not to be trusted. */
int bl_optfile_read(const char *path, bool must_exist, const char *const *groups, bl_optfile_fn *fn,
                    void *arg, struct bl_err *err);

#endif
