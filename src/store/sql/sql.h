/* The SQL texts: the prepared statements, made once per client with its table prefix, and the parts
 * that all other statements are made of. Most differences between the two servers' dialects are
 * dealt with here. */
#ifndef BL_STORE_SQL_SQL_H
#define BL_STORE_SQL_SQL_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "core/key.h"

enum bl_stmt {
	BL_STMT_TAKE_BELL, /* doorbell and row in one go, if there is no row */
	BL_STMT_TAKE,      /* the row, if there is none */
	BL_STMT_HAND_OVER, /* from its owner to another one */
	BL_STMT_DROP_RING, /* the last release, row and doorbell in one go: a compound */
	BL_STMT_LOOK,      /* row and doorbell, without locking */
	BL_STMT_PROBE,     /* the row, unless it is locked */
	BL_STMT_DEPTH,     /* re-entry, or a level given back */
	BL_STMT_RENEW,
	BL_STMT_DROP,        /* the last release, without a doorbell */
	BL_STMT_SHARED_TAKE, /* a slot of a lock that is shared without a limit */
	BL_STMT_PAGE,        /* rows from a slot of a key on */
	BL_STMT_PAGE_TYPE,   /* the same of one biz_type */
	BL_STMT_PAGE_KEY,    /* the rows of one key */
	BL_STMT_COUNT
};

/* What stands for each `?`, in order. */
enum bl_param {
	BL_P_END,
	BL_P_ID,
	BL_P_TYPE,
	BL_P_SLOT,
	BL_P_BELL,
	BL_P_OWNER,
	BL_P_GIVER, /* the owner until then */
	BL_P_NOTE,
	BL_P_LEASE, /* microseconds */
	BL_P_DEPTH,
	BL_P_FENCE
};
#define BL_PARAMS_MAX 8

#define BL_TABLE_MAX (2 * 256 + 64 + 8) /* the database's name doubles its back quotes */

/* Fences are less than this. */
#define BL_SQL_FENCES 4611686018427387904u

struct bl_sql {
	bool mariadb;
	bool compound;      /* see struct bl_server */
	bool galera, group; /* a cluster's: see bl_lock_catch_up() */
	char *text[BL_STMT_COUNT];
	char table[64 + 2 + 1];     /* biz_lock with its prefix, quoted */
	char run_table[64 + 2 + 1]; /* and biz_run */

	/* The same, and biz_row_lock, with the database's name: for connections whose
	 * default is another one. */
	char lock_table[BL_TABLE_MAX], row_table[BL_TABLE_MAX];
};

/* A member of a cluster may not have applied yet what others have committed. */
static inline bool bl_sql_in_cluster(const struct bl_sql *sql)
{
	return sql->galera || sql->group;
}

/* Parameters of a statement: BL_PARAMS_MAX of them, or ended by BL_P_END. */
const enum bl_param *bl_sql_params(enum bl_stmt stmt);

/* The most rows that its answer may have. */
unsigned bl_sql_rows(enum bl_stmt stmt);

/* How many statements a text has. */
unsigned bl_sql_statements(const char *sql, size_t len);

#define BL_PAGE_ROWS 256 /* LIMIT of BL_STMT_PAGE */

/* Makes the texts; bells: GET_LOCK works on this server. NOMEM. */
int bl_sql_make(struct bl_sql *ret, const char *prefix, const char *database, bool mariadb,
                bool bells, struct bl_err *err);
void bl_sql_free(struct bl_sql *sql);

/* Texts that carry literals: names are our own hexadecimal digits, keys and
 * owners travel as hexadecimal literals, so nothing needs escaping. */
void bl_sql_wait_bell(const struct bl_sql *sql, struct bl_buf *ret, const char *bell, int64_t ms);

/* An expression that sleeps: 0 after ms, or somewhat earlier; 1 or NULL when KILL QUERY ends it. On
 * MariaDB every such sleeper has this named lock, or waits for it. keeps false: the caller gives it
 * back afterwards. */
#define BL_SLEEP_LOCK "bizsleep"
void bl_sql_sleep(const struct bl_sql *sql, struct bl_buf *ret, int64_t ms, bool keeps);

/* Lists the connections in bl_sql_wait_bell(): number, user, host, milliseconds, and the bell; the
 * longest wait first. After them come the connections in `others`, numbers that each end with a
 * comma; their bell is "". schema: whose table processlist is read. */
void bl_sql_waiters(const struct bl_sql *sql, struct bl_buf *ret, const char *schema,
                    const char *others);

/* A name in back quotes, which mean the same in every sql_mode. A back quote inside is doubled, and
 * all else stands for itself. */
void bl_sql_name(struct bl_buf *ret, const char *name, size_t len);

void bl_sql_literal(struct bl_buf *ret, const char *charset, const char *text, size_t len);
void bl_sql_give(const struct bl_sql *sql, struct bl_buf *ret, const char *new_owner,
                 uint32_t depth, int64_t lease_us);

/* WHERE: several keys, each added in turn, and the end of the list. */
void bl_sql_add_key(struct bl_buf *ret, bool first, const struct bl_key *key);
void bl_sql_end_keys(struct bl_buf *ret);

/* WHERE: all rows of a key; a hold (owner NULL: any owner's); and, to be added, that its lease is
 * not over. */
void bl_sql_key(struct bl_buf *ret, const struct bl_key *key);
void bl_sql_hold(struct bl_buf *ret, const struct bl_key *key, const char *owner, uint64_t fence);
void bl_sql_living(struct bl_buf *ret);

/* Follows the WHERE of a subquery of keys, "... (SELECT biz_id, biz_type[, slot] FROM table". The
 * subquery locks the rows that it finds, n at most, and skips rows that somebody else has locked.
 * The text that follows changes these rows, as `l`, and touches no others. No UPDATE and no DELETE
 * can skip locked rows without a subquery. Both are one statement: between two, a client that
 * stands still would keep everybody waiting for the rows. skip_locked false: for one row, which is
 * waited for. */
void bl_sql_join_selected(struct bl_buf *ret, const char *table, bool slots, uint32_t n,
                          bool skip_locked);

/* WHERE, to be added: the row is as bl_sql_give() left it. */
void bl_sql_exported(struct bl_buf *ret, uint32_t depth, int64_t lease_us);

/* rest_us > 0: the row rests until rest_us after the hold began. 0: the row is deleted.
 * BL_ROW_STAYS: the row becomes free, and stays, because others may share the lock: see
 * store/shared/sharers.h. */
enum { BL_ROW_STAYS = -1 };
void bl_sql_drop(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                 const char *owner, uint64_t fence, int64_t rest_us);

/* The exclusive hold becomes a sharer's, with its fence and depth, in `slot`; slot 0 becomes free,
 * and stays. One statement: nobody sees one without the other. NULL (1048): another row is in that
 * slot. */
void bl_sql_downgrade(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                      const char *owner, uint64_t fence, uint32_t slot);

/* The rest_us for an owner who may not have had the lock. */
int64_t bl_sql_rest_of_others(const struct bl_key *key);

/* The same for a row that its owner does not know of. The row with the fence but_fence is spared:
 * an ended thread with the same number, and so the same owner name, left it. */
void bl_sql_sweep(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                  const char *owner, uint64_t but_fence);

/* What a row is to the reaper. */
enum bl_reap_kind {
	BL_REAP_NONE, /* in use, or not over for long enough */
	BL_REAP_LEASES,
	BL_REAP_RESTS,
	BL_REAP_ROW_LOCKS,
	BL_REAP_KINDS
};

enum bl_reap_table { BL_REAP_LOCKS, BL_REAP_OF_ROW_LOCKS, BL_REAP_TABLES };

const char *bl_sql_reap_table(const struct bl_sql *sql, enum bl_reap_table table);

/* Reads n rows after a key, which is given as literals; NULL: from the beginning. Columns: id,
 * type, kind, and slot, which row locks do not have. */
void bl_sql_reap_page(const struct bl_sql *sql, struct bl_buf *ret, enum bl_reap_table table,
                      int64_t older_us, const char *after_id, const char *after_type,
                      uint32_t after_slot, uint32_t n);

/* The keys of n rows: lists of literals, with commas between them. */
struct bl_sql_keys {
	struct bl_buf text;
	uint32_t n;
};

/* Marks rows of slot 0 that are free and can go: they become the owner's, with leases that are
 * over, so any contender may clear or take them. Other rows are not touched. */
void bl_sql_mark(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys,
                 int64_t older_us, const char *owner);

/* Deletes the rows that can still go, and answers how many microseconds the server took. A row of
 * slot 0 can go if it is marked, or a holder that died has left it. While somebody shares one of
 * these locks no row of slot 0 goes, and the marked rows become free again. */
void bl_sql_reap_locks(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_sql_keys *keys,
                       int64_t older_us, const char *owner);
void bl_sql_reap_row_locks(const struct bl_sql *sql, struct bl_buf *ret,
                           const struct bl_sql_keys *keys, int64_t older_us);

/* biz_row_lock.gmt_create is at most this much older than the last use of the row lock. Were it
 * exact, each use would have to write. */
#define BL_SQL_USED_US (600 * INT64_C(1000000))

/* Brings gmt_create up to date, unless the row is locked. */
void bl_sql_use_row_lock(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key);

/* A run of a job, in biz_run. Both statements may be sent twice. begin: changes nothing if a run
 * with this fence or a larger one has begun. lease_ms: 0 if `timeout` of the hold's row is the end
 * of its lease. end: of the run that has this fence, unless it was told already. If the server has
 * the hold no more, the outcome is "lost", whatever is told. */
void bl_sql_begin_run(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                      const char *owner, uint64_t fence, uint32_t lease_ms);

struct bl_run_end {
	const char *outcome; /* one word, of ours */
	int32_t exit_code;   /* -1: none */
	uint32_t exit_signal;
};

void bl_sql_end_run(const struct bl_sql *sql, struct bl_buf *ret, const struct bl_key *key,
                    const char *owner, uint64_t fence, const struct bl_run_end *end);

/* The key after which a page begins: any bytes. */
struct bl_sql_after {
	const char *id, *type;
	size_t id_len, type_len;
};

/* Reads BL_PAGE_ROWS runs. biz_type, biz_id, after: NULL where all are meant. Columns: id, type,
 * owner, fence, outcome, whether the hold's lease lasts, exit_code, exit_signal; the server's time,
 * and that of the beginning, end and last success, in microseconds since 1970, 0: none; runs,
 * successes, since_success. */
void bl_sql_page_runs(const struct bl_sql *sql, struct bl_buf *ret, const char *biz_type,
                      const char *biz_id, const struct bl_sql_after *after);

/* One INSERT for a set of keys, each added in turn, and the statement that reads the rows. */
struct bl_sql_row {
	const struct bl_key *key;
	const char *owner, *note; /* note: NULL or text */
	int64_t lease_us;
	bool if_bell;                /* the whole statement is refused unless @bizlock_bell is 1 */
	bool bell;                   /* the connection has its doorbell */
	bool now_is_set, end_is_set; /* bl_sql_set_times() came before; and had this lease */
};

/* Adds a statement that computes the times of all rows once. To compute them for a row costs as
 * much as the row's place in the index. */
void bl_sql_set_times(struct bl_buf *ret, int64_t lease_us);

void bl_sql_begin_set(const struct bl_sql *sql, struct bl_buf *ret);
void bl_sql_add_to_set(struct bl_buf *ret, bool first, const struct bl_sql_row *row);

/* Adds a free row, without an owner. Where a row is there, the INSERT serves to draw its fence
 * again. */
void bl_sql_add_free_row(struct bl_buf *ret, bool first, const struct bl_key *key);
void bl_sql_end_set(struct bl_buf *ret);
void bl_sql_begin_again(struct bl_buf *ret); /* a new fence, no more, where a condition is true: */
void bl_sql_end_again(struct bl_buf *ret);   /* it stands between these two */
/* In place of bl_sql_end_set(): all rows must be new, or nothing is done. */
void bl_sql_end_batch(struct bl_buf *ret);
/* looks: also asks whether anybody shares the lock, or a former sharer's row is in the way. */
void bl_sql_read_set(const struct bl_sql *sql, struct bl_buf *ret, bool looks);

#endif
