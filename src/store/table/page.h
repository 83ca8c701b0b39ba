/* Reading the table in pages along the primary key: each page shows one moment, and nothing is
 * locked or held open between two pages. */
#ifndef BL_STORE_TABLE_PAGE_H
#define BL_STORE_TABLE_PAGE_H

#include "core/key.h"
#include "store/session/session.h"

struct bl_page_row {
	char id[BL_STORED_ID_MAX + 1], type[BL_STORED_TYPE_MAX + 1];
	size_t id_len, type_len; /* there may be NULs among them */
	char owner[BL_OWNER_MAX + 1], note[BIZLOCK_NOTE_MAX * 4 + 1];
	uint64_t fence;
	uint32_t depth, slot, limit;
	int64_t left_us, held_us;
};

struct bl_page {
	struct bl_page_row *rows; /* freed by bl_page_free */
	size_t count;             /* fewer than BL_PAGE_ROWS: the last page */
};

/* The rows after `after`; an all-zero one: from the beginning. only_type NULL: all. CONN, NOMEM;
 * DB, too, if they do not come in the order of their bytes: reading on would never end. */
int bl_page_read(struct bl_session *s, const struct bl_page_row *after, const char *only_type,
                 struct bl_page *ret, struct bl_err *err);

/* The rows of one key, from that slot on. */
int bl_page_read_key(struct bl_session *s, const struct bl_key *key, uint64_t slot,
                     struct bl_page *ret, struct bl_err *err);

void bl_page_free(struct bl_page *page);

/* A text that the server sent, as far as it fits, with a NUL. NULL counts as "". Returns its
 * length. */
size_t bl_page_text(char *to, size_t size, const char *from, unsigned long len);

/* Compares as the server has to: byte for byte. */
int bl_page_order(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
