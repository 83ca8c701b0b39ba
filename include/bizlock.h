/* bizlock: distributed, reentrant locks kept as rows of one InnoDB table.
 *
 * For C99 and C++11 programs that already use MySQL 8.0 (8.0.17 or later) or
 * MariaDB 10.6 (or later). This header is the manual, with bizlock_ops.h for
 * those who look after locks; README.md has the tour.
 *
 * WHAT THE WORDS MEAN
 *
 * key      A pair (biz_type, biz_id) that names what is locked, such as ("order", "4711"). Two keys
 *          that differ in any byte are two locks ("a", "A", "a " and "\xc3\xa1" are four).
 *
 * client   A `bizlock *`: configuration, a few connections of its own, and the table of what this
 *          process holds. Thread-safe. One per process and database is enough; two clients are two
 *          strangers to each other.
 *
 * owner    Who holds a lock: by default the calling *thread* of this process. Stored as
 *          `tid@pid.nonce@host`, the nonce drawn when the client was opened, so that a reused pid
 *          or two containers with pid 1 never pass for each other. An owner may also be named
 *          ("task-17"), for event loops and thread pools that acquire in one thread and release in
 *          another. Only the owner re-enters, renews or releases.
 *
 * lease    How long a hold lasts unless it is renewed, judged by the server's clock alone. When it
 *          is over, anybody may take the lock over. The client renews it every third of its length
 *          while the hold lasts.
 *
 * fence    The fencing token: a number that every first acquisition of a key gets, larger than any
 *          earlier one of that key, across release, takeover and server restart. Re-entry and
 *          renewal keep it. Store it with what you write, and refuse writes that carry a smaller
 *          one:
 *              UPDATE doc SET body = ?, fence = ? WHERE id = ? AND fence <= ?
 *
 * doorbell A named lock of the server (GET_LOCK), one for each key. An owner that has a lock alone
 *          keeps the doorbell from acquire to release, so that its release *is* the wake-up of the
 *          next waiter. The doorbell orders and wakes; it never excludes: the row alone decides who
 *          holds. To lose the doorbell costs fairness, never safety.
 *
 * shared   One owner has a lock alone. Or, with BIZLOCK_SHARED, several owners share it, `limit` of
 *          them at most: readers and writers, semaphores, workers with a number (grant.slot).
 *          What an owner gets while another owner has the lock:
 *
 *              holder          alone    shared
 *              wants it alone  waits    waits
 *              wants to share  waits    gets it, if fewer than `limit` share it
 *
 *          Owners are served in the order of arrival. No sharer passes a contender that waits to
 *          have the lock alone, unless the client of that contender has died or stood still for
 *          5 s, or the contender waits for several keys. A client may first hand the lock, or a
 *          slot of a `limit`, to its own next thread that wants the same, at most 16 times in a row
 *          and for 250 ms. An owner that has the lock alone may share it, too: it goes one level
 *          deeper. An owner that shares the lock must not ask for it alone: MISUSE. The fence of an
 *          owner that has the lock alone is larger than all fences before. The fence of a sharer is
 *          larger than that of the last owner that had the lock alone. A slot that rests
 *          (min_hold_ms) is taken: at most `limit` owners start in a period.
 *          bizlock_acquire_all() takes each key alone.
 *
 * THE CALLING SEQUENCE
 *
 *     bizlock *b = NULL;
 *     bizlock_grant grant = BIZLOCK_GRANT_INIT;
 *     bizlock_key key = { "order", "4711" };
 *
 *     if (bizlock_new(&b) != BIZLOCK_OK || bizlock_set(b, "database", "shop") != BIZLOCK_OK ||
 *         bizlock_open(b) != BIZLOCK_OK)
 *         die(bizlock_errmsg(b));
 *     if (bizlock_acquire(b, key, NULL, &grant) == BIZLOCK_OK) {
 *         work(b, grant.fence); // until it is done, or bizlock_left_ms() says stop
 *         bizlock_release(b, key, NULL, NULL);
 *     }
 *     bizlock_close(b);
 *
 * Every statement is its own short transaction on bizlock's own connections:
 * a transaction of yours is never touched, and never holds a lock up.
 *
 * WHAT HAPPENS WHEN
 *
 * the process dies    Its rows stay until their leases are over; the next contender then takes
 *                     over, gets a larger fence, and is told so by BIZLOCK_TOOK_OVER: what the lock
 *                     guards may have been left half done.
 * the holder stalls   A process that is stopped, or a machine that sleeps, does not renew. Past its
 *                     lease it no longer holds, whether it knows or not. bizlock_left_ms() tells
 *                     without a round trip; it runs on a clock that counts suspended time and that
 *                     started before the statement was sent, so it never believes in a lease longer
 *                     than the server does. Check it before touching what the lock guards, and pass
 *                     the fence.
 * the lock is lost    As soon as a lease is over by that clock, or the server says that it is: the
 *                     function set by bizlock_on_lost() is called, every call on the hold answers
 *                     BIZLOCK_LOST, and bizlock_left_ms() is <= 0. What is lost is not taken again
 *                     by re-entry: release every level first.
 * the network breaks  A call whose reply was lost reconnects and finds out what happened. Only when
 *                     the server cannot be asked in time does it answer BIZLOCK_UNKNOWN: do not act
 *                     as the holder. A row that may nevertheless be there is removed as soon as the
 *                     server is back; until then no thread of this client gets the same lock.
 * the server dies     Rows and the fence counter are durable as the server's own settings make
 *                     them; doorbells are gone and are rebuilt by use. With several hosts the next
 *                     one that takes writes is used.
 * the server's clock  A step forward ends leases early: until its next renewal a holder may not
 *   steps             know. A step back makes them last longer, for others than the holder.
 * a thread ends       What it holds is reported lost and no longer renewed; it stays locked until
 *                     the lease ends, for what it guards may be half done. Release first, or name
 *                     an owner that outlives the thread.
 * the process forks   The child holds nothing and its calls on the parent's client answer
 *                     BIZLOCK_MISUSE; it opens a client of its own. bizlock_close() in the child
 *                     frees memory and touches nothing of the parent's on the server.
 *
 * RULES FOR ALL FUNCTIONS
 *
 * - They return BIZLOCK_OK (0) or another BIZLOCK_... number, unless said otherwise. Outputs are
 *   written only on BIZLOCK_OK.
 * - Any thread may call any function at any time, except that bizlock_close() must be the last call
 *   on a client to *start*.
 * - No call is a cancellation point: a thread that pthread_cancel() is called for ends after the
 *   call, and a wait goes on until bizlock_interrupt() or _stop(). What the thread holds then is
 *   lost.
 * - Programs that this process starts inherit none of the library's descriptors; one that is
 *   started while a connection is being made may inherit that. The shared library stays loaded when
 *   dlclose() is called.
 * - Strings passed in are copied; nothing is kept. NUL-terminated UTF-8.
 * - Arguments are checked before anything is sent: BIZLOCK_INVALID, and why.
 * - The library never prints, exits, or touches signals. But the connector, when it is first used,
 *   ignores SIGPIPE for the process, and a lost connection raises it.
 * - Durations are milliseconds. `wait_ms`: 0 = try once, -1 = for ever, n = at most n.
 *
 * Link bizlock and your program against the same connector (libmariadb or
 * libmysqlclient): a process that loads both is outside anybody's warranty.
 */
#ifndef BIZLOCK_H
#define BIZLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define BIZLOCK_VERSION_MAJOR 0
#define BIZLOCK_VERSION_MINOR 1
#define BIZLOCK_VERSION_PATCH 0
#define BIZLOCK_VERSION "0.1.0"

#if defined(__GNUC__)
#define BIZLOCK_API __attribute__((visibility("default")))
#define BIZLOCK_MUST_CHECK __attribute__((warn_unused_result))
#else
#define BIZLOCK_API
#define BIZLOCK_MUST_CHECK
#endif

/* Limits, in bytes unless said otherwise. */
#define BIZLOCK_ID_MAX 128        /* biz_id */
#define BIZLOCK_TYPE_MAX 64       /* biz_type */
#define BIZLOCK_OWNER_NAME_MAX 64 /* a named owner, as passed in */
#define BIZLOCK_NOTE_MAX 255      /* note */
#define BIZLOCK_LEASE_MIN_MS 100u
#define BIZLOCK_LEASE_MAX_MS 86400000u
#define BIZLOCK_DEPTH_MAX 1000000u /* re-entries of one hold */
#define BIZLOCK_LIMIT_MAX 9999999u /* owners that share a lock */

/* Every error: X(name, number, text). Numbers are never reused.
 *
 * OK           done
 * BUSY         somebody else holds it (wait_ms 0); the message names the holder
 * TIMEOUT      wait_ms passed; the message names the holder, or the table that somebody has locked
 * CANCELLED    bizlock_interrupt(), bizlock_stop(), bizlock_close() or bizlock_cancel()
 *              ended the wait
 * LOST         the hold is over: its lease ran out, or it was broken
 * NOT_OWNER    this owner holds no such lock; nothing was changed
 * UNKNOWN      the outcome could not be found out; see "the network breaks"
 * CONN         no connection to the server could be had; nothing was done
 * DB           the server refused; the message has its words and number. Or another session has
 *              locked the table (LOCK TABLES, a backup, an ALTER), or rows of it: the message says
 *              so
 * SCHEMA       tables are missing, need a newer library, or are not as they must be; from any call,
 *              if they are dropped while a client is open, once it has tried for half a second.
 *              The message says what to do
 * INVALID      a bad argument or option; nothing was sent
 * MISUSE       the call is out of order: before open, after fork, ...
 * LIMIT        a limit was reached (re-entry depth, size of a buffer)
 * NOMEM        out of memory
 * UNSUPPORTED  a server that bizlock cannot work with
 * STALE        the transaction reads what was there before this owner had the lock: it began too
 *              early (bizlock_tx.h); roll back, and begin it anew */
#define BIZLOCK_ERRORS(X)                                                                          \
	X(OK, 0, "done")                                                                           \
	X(BUSY, 1, "held by somebody else")                                                        \
	X(TIMEOUT, 2, "not obtained in time")                                                      \
	X(CANCELLED, 3, "wait interrupted")                                                        \
	X(LOST, 4, "no longer held: the lease ran out or the lock was broken")                     \
	X(NOT_OWNER, 5, "not held by this owner")                                                  \
	X(UNKNOWN, 6, "outcome unknown: the server could not be asked")                            \
	X(CONN, 7, "no connection to the server")                                                  \
	X(DB, 8, "the server refused the statement")                                               \
	X(SCHEMA, 9, "bizlock's tables are missing, of another version, or not as they must be")   \
	X(INVALID, 10, "invalid argument or option")                                               \
	X(MISUSE, 11, "call out of order")                                                         \
	X(LIMIT, 12, "a limit was reached")                                                        \
	X(NOMEM, 13, "out of memory")                                                              \
	X(UNSUPPORTED, 14, "not supported by this server")                                         \
	X(STALE, 15, "the transaction reads what was there before the lock was acquired")

enum bizlock_error {
#define BIZLOCK_ENUM_(name, number, text) BIZLOCK_##name = number,
	BIZLOCK_ERRORS(BIZLOCK_ENUM_)
#undef BIZLOCK_ENUM_
};

typedef struct bizlock bizlock;

/* biz_type: 1 to BIZLOCK_TYPE_MAX bytes. Types that begin with "bizlock" are reserved: to take such
 * a lock is INVALID, except BIZLOCK_REAPER_TYPE. biz_id: 1 to BIZLOCK_ID_MAX bytes. */
typedef struct bizlock_key {
	const char *biz_type, *biz_id;
} bizlock_key;

/* Structs begin with their own size, set by the one that makes them, so that they can grow. A
 * larger size is fine as long as the bytes that this library does not know are zero. A smaller one
 * is INVALID, but for two earlier sizes of bizlock_acquire_opts. */

/* Flags of bizlock_acquire_opts. */
#define BIZLOCK_NO_RENEW 1u /* do not renew this hold automatically, unless a level asks for it */
#define BIZLOCK_LOCAL_REENTRY 2u /* count re-entries in memory: no round trip, no new lease */
#define BIZLOCK_NO_QUEUE                                                                           \
	4u                /* no doorbell for this call: poll instead. Slower by two statements,    \
	                     and by 100 ms where another one has the doorbell; with                \
	                     BIZLOCK_SHARED it lets that one go first, for 200 ms at most */
#define BIZLOCK_SHARED 8u /* share the lock: see "shared" above */

typedef struct bizlock_acquire_opts {
	size_t size;       /* sizeof(bizlock_acquire_opts) */
	int64_t wait_ms;   /* 0: once (BUSY), -1: for ever, n: TIMEOUT after n ms */
	uint32_t lease_ms; /* 100 ms to 24 h; 0: the client's option lease_ms */
	uint32_t flags;
	const char *owner;    /* NULL: the calling thread. Else a name of 1 to 64
	                         printable ASCII bytes without space and '@', not
	                         only digits, nor "export-" and 16 hexadecimal digits; the
	                         same in every call on this hold */
	const char *note;     /* NULL or why, for people who look: up to 255 bytes */
	uint32_t min_hold_ms; /* nobody else gets it until then, if it is released earlier,
	                         and if its holder dies, too. For
	                         work that runs at most once in a period, however the
	                         clocks of the machines that start it differ. 0: none */
	uint32_t max_hold_ms; /* the hold ends that long after the acquisition, so that a
	                         holder that hangs loses the lock; bizlock_renew() may
	                         lengthen it. Up to 2^32-1, and less than 100 is 100;
	                         0: the client's option max_hold_ms */
	uint32_t limit;       /* with BIZLOCK_SHARED: how many owners share the lock at most;
	                         0: any number */
} bizlock_acquire_opts;

#define BIZLOCK_ACQUIRE_OPTS_INIT                                                                  \
	{                                                                                          \
		sizeof(bizlock_acquire_opts), -1, 0, 0, NULL, NULL, 0, 0, 0                        \
	}

/* Flags of bizlock_grant. */
#define BIZLOCK_TOOK_OVER 1u /* the previous owner never released */

typedef struct bizlock_grant {
	size_t size;       /* sizeof(bizlock_grant), set by the caller */
	uint64_t fence;    /* the fencing token, > 0 */
	uint32_t depth;    /* 1: first acquisition, 2: one re-entry, ... */
	uint32_t lease_ms; /* the lease that was granted */
	uint32_t flags;    /* BIZLOCK_TOOK_OVER */
	uint32_t slot;     /* of a sharer: 1 to limit; without a limit, a number that no other
	                      sharer has. 0: the owner has the lock alone */
} bizlock_grant;

#define BIZLOCK_GRANT_INIT                                                                         \
	{                                                                                          \
		sizeof(bizlock_grant), 0, 0, 0, 0, 0                                               \
	}

/* ---- a client: new, set, open, close ------------------------------------ */

/* Makes a client that is not connected yet. NOMEM, INVALID (ret is NULL). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_new(bizlock **ret);

/* Sets an option, before bizlock_open(). It comes before the environment (BIZLOCK_<OPTION>), that
 * before the groups [bizlock] and then [client] of option files, and those before the default.
 *
 *   host                localhost; "localhost" means the socket, when there is one.
 *                       Or several, such as "db1,db2:3307,[::1]:3308": tried in this
 *                       order, past those that are down, silent or refuse writes
 *   port                3306; of each host that names none
 *   socket, user, password   the connector's defaults: the login name; none
 *   database            required: where the tables are
 *   defaults_file       instead of /etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf; "": none
 *   defaults_group      the group read besides [client]; bizlock
 *   defaults_group_suffix   of [clientSUFFIX] and [bizlockSUFFIX], which come before those
 *   ssl_mode            preferred | disabled | required | verify_ca | verify_identity
 *   ssl_ca, ssl_capath, ssl_cert, ssl_key, ssl_crl, ssl_crlpath, ssl_cipher, ssl_fp, ssl_fplist,
 *   tls_version, tls_ciphersuites    of TLS, as the servers' own clients know them
 *   auth_plugins        none; more plugins by which a server may ask for the password
 *   table_prefix        "", up to 32 of [A-Za-z0-9_], put before each table name
 *   lease_ms            30000 (100 to 86400000)
 *   renew               on | off: leases are renewed until released
 *   max_hold_ms         0 (to 4294967295): for ever, or for how long they are at most
 *   release_on_close    on | off: bizlock_close() releases what is held
 *   connect_timeout_ms  5000 (1 to 600000), rounded up to whole seconds, for the
 *   io_timeout_ms       10000 (1 to 600000)  connectors know no finer; of each read, write
 *   open_wait_ms        0 (to 4294967295): how long bizlock_open() tries again where no server
 *                       can be reached, because it restarts, say; where it is full, it does so
 *                       for connect_timeout_ms at least
 *   max_connections     16 (1 to 1000)
 *   queue               auto | off: the doorbell, where the server has it; or polls
 *   combine             on | off: calls of several threads may share a transaction
 *
 * `password` alone may also be set while the client is open, by any thread and beside any call:
 * connections that are made from then on log in with it. One that came from an option file is
 * read from there again when a server refuses it.
 *
 * INVALID: unknown option or bad value. MISUSE: open already, or being opened. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_set(bizlock *, const char *option, const char *value);

/* Reads environment and option files, connects once, and checks the server. A server that is full,
 * or away for a moment, is tried again: see open_wait_ms; bizlock_interrupt() and bizlock_stop()
 * end that with CANCELLED, if they are called meanwhile. On failure the client may be set and
 * opened again, or closed. CONN; INVALID: an option from environment or file; UNSUPPORTED: server
 * too old, or STATEMENT binlog; SCHEMA: the message says what to do; MISUSE: another thread is
 * opening it; DB, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_open(bizlock *);

/* Ends waits of other threads with CANCELLED, waits until their calls have left, releases what
 * is still held (every level; option release_on_close), closes the connections and frees the
 * client. It does not release what was lost, what an ended thread held, and what an open
 * transaction has fenced. Takes NULL and clients that were never opened. Not to be called
 * by a function that the library calls. In a forked child it only frees memory.
 *
 * With a server that does not answer it returns within io_timeout_ms, or connect_timeout_ms if
 * that is longer; what it could not release stays locked until its lease ends. */
BIZLOCK_API void bizlock_close(bizlock *);

/* Creates what is missing of the tables in the configured database. Idempotent. Needs no prior
 * open, and the privilege CREATE. CONN, DB, INVALID, UNSUPPORTED; SCHEMA: the tables need a newer
 * library, or a table that is there is not as it must be. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_migrate(bizlock *);

/* ---- the lease lock ----------------------------------------------------- */

/* Takes `key` for its owner, or one level deeper if that owner has it already. opts NULL: wait for
 * ever, default lease. ret may be NULL.
 *
 * First acquisition: a new fence. Re-entry: the same fence, depth + 1, the lease starts anew unless
 * the rest of it is longer. Of what the levels ask for, the stronger wish counts for all of the
 * hold: to be renewed, the later end of min_hold_ms, the earlier end of max_hold_ms (each from its
 * own level on). The note stays that of the first level.
 * BUSY, TIMEOUT, CANCELLED: not obtained; or an open transaction has fenced it (see
 * bizlock_fence()), or another thread waits for the key under this name. LOST: this owner
 * held it and lost it; release every level before acquiring again. LIMIT: too deep.
 * UNKNOWN, CONN, DB, SCHEMA, INVALID, MISUSE, NOMEM.
 *
 * Threads of this process line up in memory first, in order of arrival; one of them
 * waits at the server's doorbell, in order of arrival there. Up to 16 times in 250 ms a
 * release may pass the lock on to the client's next thread instead. A call that tries once
 * may take up to 400 ms: if the lock is free, and another contender for it hangs. Behind a table
 * that another session has locked, it takes a second and answers DB; a wait answers TIMEOUT up to
 * a second late. Servers wait for tables for whole seconds. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_acquire(bizlock *, bizlock_key, const bizlock_acquire_opts *opts, bizlock_grant *ret);

/* All of the keys, or none: with one statement for those that are new, so that two callers that
 * want the same ones in another order never wait for each other in a circle. 1 to 256 keys, each
 * once. Some may be held already: one level deeper. opts as above, the same for each; wait_ms for
 * all together. ret: n of them, in the order of keys, or NULL; only the first one's size is looked
 * at. On any error nothing is held that was not before. Each key is taken alone. INVALID: the flag
 * BIZLOCK_SHARED. MISUSE: this owner shares one of the keys; release that key first. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_acquire_all(bizlock *, const bizlock_key *keys, size_t n,
                                                       const bizlock_acquire_opts *opts,
                                                       bizlock_grant *ret);

/* Gives one level of each back, whatever happens to one of them. The first error, or OK. The keys,
 * each once, need not have been acquired together. */
BIZLOCK_API int bizlock_release_all(bizlock *, const bizlock_key *keys, size_t n,
                                    const char *owner);

/* Gives one level back; the last one frees the lock and wakes the next waiter. owner NULL: the
 * calling thread. ret_depth may be NULL: levels left.
 * NOT_OWNER: never acquired by this owner; nothing sent. LOST: the lease ran out, or it was
 * broken. CONN, UNKNOWN: a last one is removed as soon as the server can be reached; BUSY: as
 * soon as the transaction that has fenced it has ended; DB: as soon as the server does not refuse
 * it any more, because another session has locked the table, say. After all of these the level is
 * given back here. TIMEOUT: it is not, because another thread's call on it gets no answer. */
BIZLOCK_API int bizlock_release(bizlock *, bizlock_key, const char *owner, uint32_t *ret_depth);

/* Starts the lease anew: lease_ms, which is then its length when it is renewed, too; or 0:
 * its length now. NOT_OWNER, LOST, CONN, UNKNOWN, DB, INVALID; BUSY: fenced, and unchanged;
 * TIMEOUT: unchanged, because another call on it gets no answer, or no connection was free. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_renew(bizlock *, bizlock_key, const char *owner,
                                                 uint32_t lease_ms);

/* Milliseconds this owner may still rely on the lock, by no round trip. <= 0: do not
 * touch the resource. */
BIZLOCK_API int64_t bizlock_left_ms(bizlock *, bizlock_key, const char *owner);

/* How the last renewal of this hold went that the client made itself, by no round trip. OK, or none
 * was due yet; CONN, DB, NOMEM: it failed, and bizlock_errmsg() has the server's words; BUSY:
 * fenced. After these the client tries again until the lease is over. NOT_OWNER, LOST. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_last_renewal(bizlock *, bizlock_key, const char *owner);

/* Asks the server whether the hold stands. OK, NOT_OWNER, LOST, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_verify(bizlock *, bizlock_key, const char *owner);

/* Calls fn(arg, key, fence) once for each hold that is lost, of any owner: as soon as
 * its lease is over by the local clock, the server says that it is, or the thread that holds it
 * has ended. The loss of what a request was granted is told after its `done`. fn is called by a
 * thread of the library's own, one call at a time, with no lock of the library held: it may call
 * any function but bizlock_close(), and so can release what a named owner has, but not what a
 * thread owns. While it runs, no other loss is reported. key is valid during the call. fn NULL: no
 * function is called from now on. The last call of this function
 * counts, from when it returns; a call of the earlier fn may still be running then. A hold that was
 * lost while no function was set, and was not given back since, is told to the next fn. */
BIZLOCK_API int bizlock_on_lost(bizlock *, void (*fn)(void *arg, bizlock_key, uint64_t fence),
                                void *arg);

/* Hands a held lock, with its fence and depth, to another process or client: what
 * is written to ret (NUL-terminated, up to BIZLOCK_EXPORT_MAX bytes, printable ASCII
 * without spaces) is for bizlock_import(). From here on this client does not hold
 * it; it stays locked until it is imported, for one lease at most. UNKNOWN: nobody holds it
 * now. BUSY: fenced, and held as before. NOT_OWNER, LOST, CONN, DB; LIMIT: size. */
#define BIZLOCK_EXPORT_MAX 704
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_export(bizlock *, bizlock_key, const char *owner,
                                                  char *ret, size_t size);

/* Takes over what was exported: `owner` of this client holds it from here on, renewed.
 * max_hold_ms begins anew, as this client's option has it; min_hold_ms goes along.
 * Once only: LOST when it was imported before, or its lease is over. BUSY: what an acquire
 * that ended UNKNOWN left is not removed yet, or a thread waits under this name. MISUSE: held
 * already. INVALID: not such a text. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_import(bizlock *, const char *text, const char *owner,
                                                  bizlock_grant *ret);

/* Wakes every waiting thread of this client; their calls answer CANCELLED. Calls that start later
 * wait as usual, and so does one that is about to: for a signal that is to end the program there is
 * bizlock_stop(). Async-signal-safe. */
BIZLOCK_API void bizlock_interrupt(bizlock *);

/* on != 0: from now on nothing new is acquired. Acquisitions that wait, and those that come, even
 * tries and for a lock that is free, answer CANCELLED, until it is taken back (on 0). So do
 * bizlock_import() and bizlock_reap(). All else works as ever: re-entry, release, renew. It may be
 * called before bizlock_open(). Async-signal-safe; a handler has to be gone before
 * bizlock_close(). */
BIZLOCK_API void bizlock_stop(bizlock *, int on);

/* ---- errors ------------------------------------------------------------- */

/* Static text for any number, known or not; and "BIZLOCK_BUSY" and so on. */
BIZLOCK_API const char *bizlock_strerror(int err);
BIZLOCK_API const char *bizlock_err_name(int err);

/* What went wrong in the calling thread's last failed call on this client (or in bizlock_new(),
 * with NULL): key, holder, the server's own words. "" if nothing did. Valid until the thread's
 * next failing call. Never NULL, never holds a password. */
BIZLOCK_API const char *bizlock_errmsg(const bizlock *);

/* The version of the library that is linked, "0.1.0". */
BIZLOCK_API const char *bizlock_version(void);

#ifdef __cplusplus
}
#endif

#include "bizlock_ops.h"

#endif
