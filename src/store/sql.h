/* The text of every statement, made once per client: the two servers' dialects
 * and the table prefix are dealt with here and nowhere else. */
#ifndef BL_STORE_SQL_H
#define BL_STORE_SQL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/key.h"

enum bl_stmt {
	BL_STMT_TAKE_RING, /* doorbell and row in one go */
	BL_STMT_TAKE,      /* the row alone */
	BL_STMT_LOOK,      /* row and doorbell, without locking */
	BL_STMT_DEPTH,     /* re-entry, or a level given back */
	BL_STMT_RENEW,
	BL_STMT_DROP, /* the last release, without a doorbell */
	BL_STMT_SWEEP,
	BL_STMT_BREAK,
	BL_STMT_PAGE,      /* rows after a key */
	BL_STMT_PAGE_TYPE, /* the same of one biz_type */
	BL_STMT_COUNT
};

/* What stands for each `?`, in order. */
enum bl_param {
	BL_P_END,
	BL_P_ID,
	BL_P_TYPE,
	BL_P_BELL,
	BL_P_OWNER,
	BL_P_NOTE,
	BL_P_LEASE, /* microseconds */
	BL_P_DEPTH,
	BL_P_FENCE
};
#define BL_PARAMS_MAX 8

struct bl_sql {
	bool mariadb;
	char *text[BL_STMT_COUNT];
	char table[64 + 2 + 1]; /* biz_lock with its prefix, quoted */
};

/* Parameters of a statement, ended by BL_P_END. */
const enum bl_param *bl_sql_params(enum bl_stmt stmt);

/* Makes the texts; bells: GET_LOCK works on this server. NOMEM. */
int bl_sql_make(struct bl_sql *ret, const char *prefix, bool mariadb, bool bells,
                struct bl_err *err);
void bl_sql_free(struct bl_sql *sql);

/* Texts that carry literals: names are our own hexadecimal digits, keys and
 * owners travel as hexadecimal literals, so nothing needs escaping. */
void bl_sql_wait_bell(const struct bl_sql *sql, struct bl_buf *ret, const char *bell, int64_t ms);
void bl_sql_free_bell(struct bl_buf *ret, const char *bell);
void bl_sql_kick_bell(struct bl_buf *ret, const char *bell, uint64_t by);
void bl_sql_literal(struct bl_buf *ret, const char *charset, const char *text, size_t len);
void bl_sql_renew_many(const struct bl_sql *sql, struct bl_buf *ret, int64_t lease_us);
void bl_sql_living_and_time(struct bl_buf *ret); /* ends its WHERE; then asks for the time */
void bl_sql_drop_and_ring(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                          const char *owner, uint64_t fence, const char *bell);

#endif
