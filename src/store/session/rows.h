/* The rows of one answer, read to its end. Its size is limited: the connectors would store anything
 * that a server sends. */
#ifndef BL_STORE_SESSION_ROWS_H
#define BL_STORE_SESSION_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "store/session/connector.h"

struct bl_rows {
	unsigned columns;
	size_t count;
	const unsigned long *lengths; /* of the row that bl_rows_next() returned last */
	struct bl_stored_row *first, *last, *next;
};

/* All rows of an answer together have 10 times as long as one read. A row that comes does not
 * extend this time: a server could send rows for ever. A long list is read page by page, each an
 * answer of its own, so its length does not matter. */
#define BL_ROWS_PATIENCE 10

/* Reads the present answer. *ret: NULL if it has no rows. until: when to give up an answer that
 * does not end. CONN, DB, NOMEM; the connection is cut if the answer could not be read to its end.
 */
int bl_rows_read(MYSQL *mysql, bl_time until, struct bl_rows **ret, struct bl_err *err);

/* The next row, from the first on; NULL: there is none. Texts end with a NUL. */
MYSQL_ROW bl_rows_next(struct bl_rows *rows);
void bl_rows_rewind(struct bl_rows *rows);

/* The number in a field; NULL: 0. It is limited to 2^60 and -2^60, beyond any honest answer, so
 * that sums and differences of a few numbers do not overflow. */
int64_t bl_rows_number(const char *field);

/* The same, without the limit, for a fence or a connection's number; and for a number of 32 bits, 0
 * if it is larger. */
uint64_t bl_rows_u64(const char *field);
uint32_t bl_rows_u32(const char *field);

void bl_rows_free(struct bl_rows *rows); /* takes NULL */

#endif
