/* bizlock for operators: list, inspect and break locks, see who waits, record runs of jobs, purge
 * rows, read counters, trace, check a server, set up tables. bizlock.h includes this file;
 * the rules of bizlock.h hold here too. */
#ifndef BIZLOCK_OPS_H
#define BIZLOCK_OPS_H

#include "bizlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- looking and repairing ------------------------------------------------ */

/* One row, as bizlock_each() shows it. Valid during the callback. */
typedef struct bizlock_info {
	size_t size;                   /* set by the library */
	const char *biz_type, *biz_id; /* the key */
	const char *owner, *note; /* owner "": released, and resting (min_hold_ms); note "": none */
	uint64_t fence;
	int64_t left_ms; /* of the lease, by the server's clock; <= 0: stale. A contender that waits
	                    for sharers to leave has a lease of 5 s at most */
	int64_t held_ms; /* since the hold began */
	uint32_t depth;
	uint32_t flags; /* BIZLOCK_SHARED: the owner shares the lock. 0: the owner is exclusive,
	                   or (depth 0) waits for the sharers to leave */
	uint32_t slot;  /* of a sharer: its slot, as in bizlock_grant; else 0 */
	uint32_t limit; /* of a sharer: how many may share the lock, as this sharer asked for it;
	                   0: any number */
} bizlock_info;

/* Calls fn for each row, of one biz_type or (NULL) of all: also for stale rows, but not for free
 * rows. Rows come by biz_id, then biz_type, then slot. Rows are read in pages, and each page shows
 * another moment. During fn no connection and no lock of the library is held; fn may call bizlock
 * functions. fn returns 0 to go on; anything else ends the walk, which is then OK. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_each(bizlock *, const char *biz_type,
                                                int (*fn)(void *arg, const bizlock_info *),
                                                void *arg);

/* The same for one key: one row, or a row for each sharer. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_look(bizlock *, bizlock_key, int (*fn)(void *arg, const bizlock_info *), void *arg);

/* An operator's force-unlock: ends the hold whose fence is `seen_fence`, and never a newer hold.
 * A fence names one hold: if the lock is shared, the other sharers keep it. BUSY: another hold has
 * taken its place, and the message names the holder. LOST: nobody has that fence any more. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_break(bizlock *, bizlock_key, uint64_t seen_fence);

/* ---- who waits ---------------------------------------------------------- */

/* One connection that waits for a key: at the doorbell, or as a watcher. Valid during the
 * callback. */
typedef struct bizlock_waiter {
	size_t size;                   /* set by the library */
	const char *biz_type, *biz_id; /* the key */
	const char *user, *host;       /* of the connection, as the server has them */
	uint64_t connection;           /* its number at the server */
	int64_t waited_ms;             /* in this wait; on MySQL in whole seconds. -1: not known,
	                                  because the connection watches this key, and maybe others;
	                                  or because the connection is the first in line, has the
	                                  doorbell, and waits for the holders to leave */
} bizlock_waiter;

/* Calls fn for each connection that waits for one of the n keys: first the waiters at doorbells,
 * the longest wait first, then the watchers, once for each key. A client watches keys when it waits
 * for more keys than it has connections. One query reads the server's process list, and one more
 * for each 512 keys asks who watches. During fn no connection and no lock of the library is held.
 * fn returns 0 to go on; anything else ends the walk, which is then OK.
 *
 * There may be more waiters than it shows. Without the privilege PROCESS, which bizlock never asks
 * for, a user sees only the connections of its own name: all of them, where all clients share one
 * user. Of several threads of a client that want the same key, only the first waits at the server;
 * the others wait behind it in memory. Of the clients that watch the same key, two are seen. Not
 * seen are waiters that poll (queue=off, BIZLOCK_NO_QUEUE, ...), and waiters at another node of a
 * cluster. A wait counts from its beginning at the doorbell, and at least once a lease a waiter
 * looks at the row again and comes back to the doorbell. CONN, DB, INVALID, MISUSE, NOMEM, TIMEOUT:
 * all connections of the client are in use. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_waiters(bizlock *, const bizlock_key *keys, size_t n,
                                                   int (*fn)(void *arg, const bizlock_waiter *),
                                                   void *arg);

/* ---- runs ----------------------------------------------------------------- */

/* What is remembered of a job that runs under a lock, such as a nightly one: its last run, when a
 * run last succeeded, and counts. A key has one row of the table biz_run, which is written when a
 * run begins and when it ends. A hold has one run. The lock must be held exclusively, because
 * sharers would have several runs at a time.
 *
 *     bizlock_run_result result = BIZLOCK_RUN_RESULT_INIT;
 *
 *     if (bizlock_run_begin(lock, key, NULL) != BIZLOCK_OK)
 *         fprintf(stderr, "not recorded: %s\n", bizlock_errmsg(lock)); // and go on
 *     // ... the work; before bizlock_release():
 *     result.outcome = BIZLOCK_RUN_DONE;
 *     rc = bizlock_run_end(lock, key, NULL, &result);
 *
 * Acquisitions never wait for this table. */

/* How a run ended.
 *
 * RUNNING  it has not: its process holds the lock
 * DONE     it succeeded
 * FAILED   it failed
 * LOST     it ended, and did not hold the lock any more
 * DIED     its process ended without a word, and its lease is over; only read, never written */
enum bizlock_outcome {
	BIZLOCK_RUN_RUNNING,
	BIZLOCK_RUN_DONE,
	BIZLOCK_RUN_FAILED,
	BIZLOCK_RUN_LOST,
	BIZLOCK_RUN_DIED
};

typedef struct bizlock_run_result {
	size_t size;          /* sizeof(bizlock_run_result) */
	uint32_t outcome;     /* BIZLOCK_RUN_DONE, BIZLOCK_RUN_FAILED or BIZLOCK_RUN_LOST */
	int32_t exit_code;    /* of a process, 0 or more; -1: it has none */
	uint32_t exit_signal; /* that ended a process; 0: none */
	uint32_t reserved;    /* 0 */
} bizlock_run_result;

#define BIZLOCK_RUN_RESULT_INIT                                                                    \
	{                                                                                          \
		sizeof(bizlock_run_result), BIZLOCK_RUN_FAILED, -1, 0, 0                           \
	}

/* Records that a run begins now, under the hold of this owner. owner NULL: the calling thread. A
 * second call for the same hold changes nothing. After any error the lock is held as before, and
 * the work may go on without a record. SCHEMA: the table biz_run is missing; DB: this user may not
 * write to it, or another session has locked it, for which this call waits for up to a second;
 * NOT_OWNER, LOST, INVALID (the lock is shared, for example), MISUSE, NOMEM, CONN: it may have been
 * recorded; TIMEOUT: no connection of the client was free. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_run_begin(bizlock *, bizlock_key, const char *owner);

/* Records that the run ends now. To be called before bizlock_release(): the next holder may begin
 * its run at once, and the end of an earlier run is not recorded then. If the hold has been lost,
 * the outcome is BIZLOCK_RUN_LOST, whatever *result says. Changes nothing if the run's beginning
 * was not recorded. NOT_OWNER: this owner has released the lock; INVALID, SCHEMA, DB, MISUSE,
 * NOMEM, CONN, TIMEOUT: as above. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_run_end(bizlock *, bizlock_key, const char *owner,
                                                   const bizlock_run_result *result);

/* The runs of one key, as bizlock_each_run() shows them. Valid during the callback. All times are
 * microseconds since 1970, UTC, by the server's clock. */
typedef struct bizlock_run {
	size_t size;                   /* set by the library */
	const char *biz_type, *biz_id; /* the key */
	const char *owner;             /* of the last run: name@pid.nonce@host */
	uint64_t fence;                /* of its hold */
	int64_t now_us;                /* when this was read */
	int64_t began_us;              /* when the last run began */
	int64_t ended_us;              /* when it ended; 0: RUNNING or DIED */
	int64_t succeeded_us;          /* when a run last ended as DONE; 0: none has */
	uint64_t runs;                 /* that have begun */
	uint64_t failures;             /* of them: that ended, and not as DONE */
	uint64_t failures_in_row;      /* of these: since a run last ended as DONE */
	uint32_t outcome;              /* of the last run: enum bizlock_outcome */
	int32_t exit_code;             /* of its process; -1: it has none, or none yet */
	uint32_t exit_signal;          /* that ended its process; 0: none */
	uint32_t reserved;             /* 0 */
} bizlock_run;

/* Calls fn for each key that has runs, of one biz_type or (NULL) of all; biz_id NULL: of all. They
 * come by biz_id, then biz_type. Rows are read in pages, and each page shows another moment. During
 * fn no connection and no lock of the library is held; fn may call bizlock functions. fn returns 0
 * to go on; anything else ends the walk, which is then OK. SCHEMA: the table biz_run is missing;
 * DB: this user may not read it; INVALID: biz_id without biz_type, for example; CONN, MISUSE,
 * NOMEM, TIMEOUT: no connection of the client was free. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_each_run(bizlock *, const char *biz_type,
                                                    const char *biz_id,
                                                    int (*fn)(void *arg, const bizlock_run *),
                                                    void *arg);

/* ---- the reaper ---------------------------------------------------------- */

/* The reaper purges rows that nobody needs any more: rows of dead holders, rests that are over, and
 * rows of row locks that nobody has asked for in a long time. A lock that was shared, or broken,
 * keeps a free row, which is purged when nobody shares the lock. Such rows only make lists and
 * tables longer; run the reaper every hour or so. */

/* What was done, or would be with BIZLOCK_REAP_DRY_RUN. */
typedef struct bizlock_reap_result {
	size_t size;          /* sizeof(bizlock_reap_result), set by the caller */
	uint64_t rows;        /* in all tables at the beginning: with looked_at, for progress bars.
	                         The server's estimate, which may be wrong by half */
	uint64_t looked_at;   /* rows that were read so far */
	uint64_t leases;      /* purged: locks whose lease was over */
	uint64_t rests;       /* purged: locks that rested after their release (min_hold_ms), and
	                         free rows of locks that were shared */
	uint64_t row_locks;   /* purged: rows of row locks */
	uint64_t passed_over; /* not purged: in use, or locked, when they were to be purged */
} bizlock_reap_result;

#define BIZLOCK_REAP_RESULT_INIT                                                                   \
	{                                                                                          \
		sizeof(bizlock_reap_result), 0, 0, 0, 0, 0, 0                                      \
	}

/* Flags of bizlock_reap_opts. */
#define BIZLOCK_REAP_DRY_RUN 1u /* count; purge nothing, write nothing, take no lock */

typedef struct bizlock_reap_opts {
	size_t size;           /* sizeof(bizlock_reap_opts) */
	int64_t older_than_ms; /* since the end of the lease, or of the rest, or since the row
	                          lock was asked for last; up to 100 years. 3600000: an hour */
	uint32_t batch;        /* rows purged in one transaction, at most: 1 to 10000. 500 */
	uint32_t pause_ms;     /* between two batches. 0 */
	uint64_t max;          /* rows purged in all, at most; 0: no limit */
	uint32_t flags;
	uint32_t reserved; /* 0 */
	/* NULL, or called after each batch, and from time to time while there is nothing to
	 * purge. It returns 0 to go on; anything else ends bizlock_reap(), which is then OK.
	 * so_far is valid during the call. It may call any function but bizlock_close(). */
	int (*progress)(void *arg, const bizlock_reap_result *so_far);
	void *arg;
} bizlock_reap_opts;

#define BIZLOCK_REAP_OPTS_INIT                                                                     \
	{                                                                                          \
		sizeof(bizlock_reap_opts), 3600000, 500, 0, 0, 0, 0, NULL, NULL                    \
	}

/* The reaper's own lock. As long as somebody holds it, no reaper works. */
#define BIZLOCK_REAPER_TYPE "bizlock"
#define BIZLOCK_REAPER_ID "reaper"

/* Purges the rows that nobody has needed for older_than_ms, of all clients of these tables.
 * opts NULL: as initialised. ret may be NULL.
 *
 * Not purged are locks that are held, fenced by an open transaction, or not that old, and row locks
 * that a transaction has. Rows are found without locking anything, and judged again, by the
 * server's clock, as they are purged; rows that are locked are passed over. So a reaper waits for
 * nobody. Others may wait for a batch, which is sized to take 20 ms or less on the server. After a
 * batch that took more than 50 ms the reaper pauses for as long. Fences go on growing.
 *
 * The next holder of a lock whose row was purged is not told BIZLOCK_TOOK_OVER. The last use of a
 * row lock is noted to ten minutes, so that its row stays that much longer; the next
 * bizlock_row_lock() makes a purged row again.
 *
 * One reaper works at a time: it holds the lock BIZLOCK_REAPER_TYPE, BIZLOCK_REAPER_ID, and renews
 * it. BUSY: another reaper holds that lock, and is named in the message. LOST: this reaper has lost
 * the lock, and stopped. CANCELLED: bizlock_interrupt() or _stop(), after a batch. CONN, UNKNOWN,
 * TIMEOUT (no connection of the client was free), DB, INVALID, MISUSE, NOMEM. After all of these,
 * the batches that were purged stay purged, and were told to `progress`. A batch whose reply was
 * lost is repeated, and the rows that its first try purged are missing in the numbers. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_reap(bizlock *, const bizlock_reap_opts *opts,
                                                bizlock_reap_result *ret);

/* ---- numbers ------------------------------------------------------------ */

/* Upper bounds of the histogram of waits, in milliseconds; the last is open. */
#define BIZLOCK_WAIT_BOUNDS_MS 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 30000
#define BIZLOCK_WAIT_BUCKETS 13

/* What a client has counted since it was opened. */
typedef struct bizlock_numbers {
	size_t size;         /* sizeof(bizlock_numbers), set by the caller */
	uint64_t held;       /* now */
	uint64_t acquired;   /* first acquisitions, takeovers among them */
	uint64_t taken_over; /* first acquisitions from an owner that never released */
	uint64_t reentered;
	uint64_t busy, timed_out, cancelled, unknown; /* acquisitions that ended so */
	uint64_t released;                            /* last levels given back */
	uint64_t lost;                                /* holds */
	uint64_t renewals;                            /* leases renewed by the client itself */
	uint64_t renew_lag_us, renew_lag_max_us;      /* how late they were: sum, longest */
	uint64_t retried_conflict; /* statements repeated: deadlock, lock wait, certification */
	uint64_t retried_stopped;  /* repeated: killed, or ended by a time limit of the server */
	uint64_t retried_lost;     /* repeated: the connection was lost */
	uint64_t reconnects;       /* connections opened in place of lost ones */
	uint64_t clock_steps;      /* of the server's clock, noticed by renewals */
	uint64_t wait_us;          /* sum of the waits of all that were acquired */
	uint64_t waits[BIZLOCK_WAIT_BUCKETS]; /* the waits that fell into each bucket */
	uint64_t renew_unreached; /* renewals that failed: no connection, or no answer; */
	uint64_t renew_refused;   /* the server refused; */
	uint64_t renew_fenced;    /* a transaction had locked the row: tried again soon */
} bizlock_numbers;

#define BIZLOCK_NUMBERS_INIT                                                                       \
	{                                                                                          \
		sizeof(bizlock_numbers), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,  \
		        {0}, 0, 0, 0                                                               \
	}

/* Reads what the client has counted. INVALID, MISUSE. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_stats(bizlock *, bizlock_numbers *ret);

/* Writes the same numbers in Prometheus' text exposition format, NUL-terminated, to ret, which has
 * `size` bytes; 4 KB is enough. *ret_len (may be NULL): the length of the text without the NUL,
 * also on LIMIT: size is too small, and *ret_len + 1 is needed. INVALID, MISUSE, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_stats_prometheus(bizlock *, char *ret, size_t size,
                                                            size_t *ret_len);

/* ---- why it does what it does ------------------------------------------- */

/* One line of a trace. Valid during the callback. The text is complete: it begins with key and
 * owner, and has no control characters. biz_type, biz_id and owner repeat them as they are, so that
 * a program can choose lines by them: texts change from version to version. */
typedef struct bizlock_trace {
	size_t size;                   /* set by the library */
	int64_t time_us;               /* of the decision: microseconds since 1970, UTC */
	const char *biz_type, *biz_id; /* the key; NULL: the line is about no key */
	const char *owner;             /* its name or thread number; NULL: about no owner */
	const char *text;
} bizlock_trace;

/* Calls fn for each thing that this client does about its locks, and says why: what a contender has
 * seen (row, doorbell) and does (goes for the row, sleeps at the doorbell, is watched, polls, goes
 * past the doorbell, gives up); who got a lock, released it, handed it over, lost it; renewals and
 * batches; connections opened, lost and ended; rows removed late. The trace has no passwords.
 * fn NULL: no trace, which costs a look at a flag. The client may be new or open.
 *
 * A thread of the library calls fn, one line at a time, a moment after the fact, with no lock of
 * the library held: an fn that is slow or blocks delays no renewal. 1,024 lines wait for fn;
 * further lines are dropped, and a line says how many. fn may call any function but bizlock_close()
 * and this one (MISUSE); what fn does is traced, too. This function and bizlock_close() return when
 * the earlier fn has been told all lines so far; it is not called after that. In a forked child fn
 * is not called. A trace costs a thread, 1 MB, and up to 20 us for each line. INVALID, MISUSE;
 * NOMEM: no trace. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_on_trace(bizlock *, void (*fn)(void *arg, const bizlock_trace *), void *arg);

/* ---- is all well -------------------------------------------------------- */

/* Levels of a finding.
 *
 * GOOD   nothing to do
 * WARN   locks work, but slower, in another order or less durably; or it could not be checked
 * BAD    locks do not work, or a guarantee is broken */
enum bizlock_level { BIZLOCK_GOOD, BIZLOCK_WARN, BIZLOCK_BAD };

/* One finding. Valid during the callback. */
typedef struct bizlock_finding {
	size_t size;        /* set by the library */
	const char *name;   /* of the check; stays the same from version to version */
	const char *text;   /* what was found: one line, printable */
	const char *remedy; /* what to do: one line, printable; "" when good */
	int level;          /* enum bizlock_level */
	uint32_t reserved;  /* 0 */
} bizlock_finding;

/* Checks whether bizlock can work with this server, its tables and this user, and calls
 * fn for each check, good or not, in this order:
 *
 *   connection      to the server, as bizlock_open() makes it
 *   database        the configured one exists; else the tables are not checked
 *   server          kind and version
 *   tables          are there, and need no newer library
 *   engine          InnoDB
 *   primary_key     of the tables of locks, and no index that is not needed
 *   collation       of keys and owners: byte for byte
 *   auto_increment  fences grow, and go on growing after a restart
 *   additions       no triggers, foreign keys or system versioning of the tables
 *   limits          all owners that share a lock name the same limit
 *   routines        those of bizlock_migrate_routines(), if there are any, are of this library
 *   grants          what this user lacks of the privileges that bizlock_grants() writes:
 *                   tried by preparing statements that are not run
 *   sql_mode, isolation   the server keeps the values that bizlock sets for its own sessions
 *   transactions    settings that bizlock_tx.h meets in sessions of your own
 *   inherited       settings that bizlock undoes for its own sessions, or that weaken yours
 *   binlog_format   not STATEMENT
 *   filters         the binary log has the database
 *   read_only       no
 *   galera          no node of a cluster, or one that is synced
 *   group           no member of a group, or one that is ONLINE, in a group that can lose another,
 *                   with group_replication_consistency BEFORE_ON_PRIMARY_FAILOVER or stronger
 *   doorbell        GET_LOCK works
 *   watching        KILL QUERY works, so that releases wake clients that watch many keys
 *   proxy           no proxy on the way shares connections, or leads to several servers
 *   connections     max_connections and max_user_connections have room for this client
 *   threads         a thread pool of the server may have a thread for each connection
 *   quotas          the user has no limits by the hour
 *   prepared_statements   max_prepared_stmt_count has room for this client's
 *   wait_timeout    leaves time to keep connections that hold doorbells alive
 *   packets         max_allowed_packet
 *   durability      the server flushes at each commit
 *   clock           of this host and of the server: less than a second apart
 *   lock            a lock is taken, renewed and released
 *
 * It leaves nothing changed, and needs no prior open: it also checks what bizlock_open() would
 * refuse. A check that cannot be made, because a privilege is missing for example, is a finding.
 * fn may call bizlock functions; it returns 0 to go on, anything else ends the walk. With several
 * hosts it checks the host that bizlock_open() would use. OK: all checks were made, whatever they
 * found. CONN, DB: no server could be reached, or the server was lost before the end; the last
 * finding says so. INVALID, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_doctor(bizlock *, int (*fn)(void *arg, const bizlock_finding *), void *arg);

/* ---- setting up --------------------------------------------------------- */

/* One migration of the tables, as bizlock_each_migration() shows it. Valid during the
 * callback. */
typedef struct bizlock_migration {
	size_t size;            /* set by the library */
	const char *name;       /* of its file: "002_runs.sql" */
	const char *sql;        /* the statements, with the option table_prefix put in */
	const char *applied_at; /* UTC, "2026-02-28 09:30:00.123456"; "": was not applied */
	uint32_t version;       /* the number that the file's name begins with */
	int pending;            /* 1: bizlock_migrate() would run it now; also if it was applied
	                           and a table has been dropped since */
} bizlock_migration;

/* Calls fn for each migration that this library knows, in order. It changes nothing, and needs no
 * prior open. It needs the privilege SELECT on biz_lock_schema; without a privilege on the tables
 * of locks it cannot see them, and shows each migration as pending. During fn no connection is
 * held. fn returns 0 to go on; anything else ends the walk. CONN, DB, INVALID, NOMEM; SCHEMA: the
 * tables need a newer library, and each migration that this library knows was shown. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_each_migration(bizlock *, int (*fn)(void *arg, const bizlock_migration *), void *arg);

/* Makes all new fences larger than every fence given before, and larger than *ret (ret may be
 * NULL). Call it after a TRUNCATE, a restored dump, or a copy of a table in its place: they set the
 * counter of fences back. New fences are at least the microseconds since 1970, because nothing
 * tells which fences a lost database has given. Holders keep their locks and fences. Needs
 * no prior open, and no privilege that locks do not need; may be called while clients are at work,
 * as often as you like. CONN, DB, INVALID, NOMEM, UNSUPPORTED; SCHEMA: the tables are missing, need
 * a newer library, or are not as they must be, or fences would become larger than 2^62. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_raise_fences(bizlock *, uint64_t *ret);

/* Writes the GRANT statements that let `user` do all that this library does, except
 * bizlock_migrate(), and nothing else: one statement a line, each with its ';', in UTF-8, for the
 * options database and table_prefix. user: "name" or "name@host", split at the last '@'; without a
 * '@' the host is %. Names may have any characters but control characters; they are written in back
 * quotes. Needs no connection, and no prior open. ret, size and ret_len: as in
 * bizlock_stats_prometheus(); 4 KB is enough. INVALID, LIMIT, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_grants(bizlock *, const char *user, char *ret,
                                                  size_t size, size_t *ret_len);

/* Makes the routines of sql/routines.sql in the configured database, or replaces them by those of
 * this library: programs in other languages take the same locks by CALL. The tables have to be
 * there. Needs no prior open; and the privileges CREATE ROUTINE, ALTER ROUTINE, CREATE VIEW and
 * DROP. The routines run with the privileges of the user that this client connects as, which has to
 * have those of bizlock_grants(), and must stay. On MySQL the users of routines that are replaced
 * need their privileges anew: see bizlock_grants_routines(). CONN, DB, INVALID, NOMEM, UNSUPPORTED;
 * SCHEMA: the tables are missing, need a newer library, or are not as they must be. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_migrate_routines(bizlock *);

/* Drops the routines, if they are there. Their holders keep their locks until the leases end.
 * Needs no prior open; and the privileges ALTER ROUTINE and DROP. CONN, DB, INVALID, NOMEM,
 * UNSUPPORTED. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_drop_routines(bizlock *);

/* The same as bizlock_grants(), for a user that takes locks by the routines alone. They have to be
 * there when the statements are run. INVALID, LIMIT, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_grants_routines(bizlock *, const char *user, char *ret,
                                                           size_t size, size_t *ret_len);

#ifdef __cplusplus
}
#endif

#endif
