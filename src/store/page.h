/* Reading the table in pages along the primary key: no page sees more than a
 * moment, and nothing is locked or held open between two of them. */
#ifndef BL_STORE_PAGE_H
#define BL_STORE_PAGE_H

#include "core/key.h"
#include "store/session.h"

#define BL_PAGE_ROWS 256 /* LIMIT of the statement */

struct bl_page_row {
	char id[BIZLOCK_ID_MAX * 4 + 1], type[BIZLOCK_TYPE_MAX * 4 + 1];
	char owner[BL_OWNER_MAX + 1], note[BIZLOCK_NOTE_MAX * 4 + 1];
	uint64_t fence;
	uint32_t depth;
	int64_t left_us, held_us;
};

struct bl_page {
	struct bl_page_row *rows; /* freed by bl_page_free */
	size_t count;             /* fewer than BL_PAGE_ROWS: the last page */
};

/* The rows after (after_id, after_type), or at the beginning with ("", "").
 * only_type NULL: all. CONN, DB, NOMEM. */
int bl_page_read(struct bl_session *s, const char *after_id, const char *after_type,
                 const char *only_type, struct bl_page *ret, struct bl_err *err);

/* The row of one key, if there is one. */
int bl_page_read_key(struct bl_session *s, const struct bl_key *key, struct bl_page *ret,
                     struct bl_err *err);

void bl_page_free(struct bl_page *page);

#endif
