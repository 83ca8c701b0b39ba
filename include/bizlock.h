/* bizlock: distributed, reentrant locks kept as rows of one InnoDB table.
 *
 * For C99 and C++11 programs that already use MySQL 8.0 (8.0.17 or later) or
 * MariaDB 10.6 (or later). This header is the manual, bizlock_ops.h the manual
 * for operators; README.md has a tour.
 *
 * WHAT THE WORDS MEAN
 *
 * key      A pair (biz_type, biz_id) that names what is locked, such as ("order", "4711"). Two keys
 *          that differ in any byte are two locks ("a", "A", "a " and "\xc3\xa1" are four).
 *
 * client   A `bizlock *`: configuration, a few connections of its own, and the table of what this
 *          process holds. Thread-safe. One per process and database is enough. Two clients of one
 *          process share nothing, as if they were two processes.
 *
 * owner    Who holds a lock: by default the calling *thread* of this process. Stored as
 *          `tid@pid.nonce@host`. The nonce is drawn when the client is opened: it tells apart two
 *          processes with a reused pid, or two containers with pid 1. An owner may also be named
 *          ("task-17"), for event loops and thread pools that acquire in one thread and release in
 *          another. Only the owner re-enters, renews or releases.
 *
 * lease    How long a hold lasts unless it is renewed, judged by the server's clock alone. When
 *          the lease is over, anybody may take the lock over. While the hold lasts, the client
 *          renews the lease every third of its length.
 *
 * fence    The fencing token: a number that every first acquisition of a key gets, larger than any
 *          earlier one of that key, across release, takeover and server restart. Re-entry and
 *          renewal keep it. Store the fence with the data you write, and refuse writes that carry
 *          a smaller fence:
 *              UPDATE doc SET body = ?, fence = ? WHERE id = ? AND fence <= ?
 *
 * doorbell A named lock of the server (GET_LOCK), one for each key. An exclusive owner keeps the
 *          doorbell from acquire to release, so that its release *is* the wake-up of the next
 *          waiter. The doorbell orders and wakes; it never excludes: only the row decides who
 *          holds. To lose the doorbell costs fairness, never safety.
 *
 * shared   A lock is exclusive: it has one owner. Or, with BIZLOCK_SHARED, several owners share it,
 *          `limit` of them at most: readers and writers, semaphores, workers with a number
 *          (grant.slot). What an owner gets while another owner holds the lock:
 *
 *                               lock is exclusive  lock is shared
 *              wants exclusive  waits              waits
 *              wants to share   waits              gets it, if fewer than `limit` share it
 *
 *          Owners are served in the order of arrival. No sharer passes a contender that waits for
 *          the exclusive lock, unless the client of that contender has died or stood still for
 *          5 s, or the contender waits for several keys. A client may first hand the lock, or a
 *          slot of a `limit`, to its own next thread that wants the same, at most 16 times in a row
 *          and for 250 ms. An exclusive owner that asks to share the lock goes one level deeper;
 * with bizlock_downgrade() it shares the lock from then on. A sharer that asks for the exclusive
 * lock gets MISUSE. The fence of an exclusive owner is larger than all fences before. The fence of
 * a sharer is larger than that of the last exclusive owner. A slot that rests (min_hold_ms) counts
 * as taken, so that at most `limit` owners start in that time. bizlock_acquire_all() takes
 * exclusive locks only.
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
 * bizlock never touches your transactions, and they never delay a lock.
 *
 * WHAT HAPPENS WHEN
 *
 * the process dies    Its rows stay until their leases are over; the next contender then takes
 *                     over, gets a larger fence, and is told so by BIZLOCK_TOOK_OVER: what the lock
 *                     guards may have been left half done.
 * the holder stalls   A process that is stopped, or a machine that sleeps, does not renew. After
 *                     its lease it no longer holds the lock, whether it knows or not.
 *                     bizlock_left_ms() tells without a round trip. Its clock counts suspended
 *                     time and starts before the statement is sent, so that the holder never
 *                     believes in the lease longer than the server does. Check it before you touch
 *                     what the lock guards, and pass the fence.
 * the lock is lost    A hold is lost when its lease is over by that clock, or the server says so.
 *                     Then the function set by bizlock_on_lost() is called, every call on the hold
 *                     answers BIZLOCK_LOST, and bizlock_left_ms() is <= 0. Re-entry does not take
 *                     a lost lock again: release every level first.
 * the network breaks  A call whose reply was lost reconnects and finds out what happened. Only when
 *                     the server cannot be asked in time does it answer BIZLOCK_UNKNOWN: do not act
 *                     as the holder. The client then removes the row that it may have left, as soon
 *                     as the server is back; until then none of its threads gets the same lock.
 * the server dies     Rows and the fence counter are as durable as the server's settings make them.
 *                     Doorbells are lost, and come back with use. With several hosts, the client
 *                     uses the next host that takes writes.
 * the server's clock  A step forward ends leases early; a holder may not know until its next
 *   steps             renewal. A step back makes leases last longer, but not for their holders.
 * a thread ends       Its holds are reported lost and no longer renewed. They stay locked until
 *                     their leases end, because what they guard may be half done. Release first, or
 *                     name an owner that outlives the thread.
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
 * - No call is a cancellation point. After pthread_cancel() a thread ends when its call returns;
 *   a call that waits returns after bizlock_interrupt() or _stop(). The thread's holds are lost.
 * - Programs that this process starts do not inherit the library's descriptors; but a program that
 *   is started while a connection is being made may inherit that connection's. The shared library
 *   stays loaded when dlclose() is called.
 * - Strings are NUL-terminated UTF-8. The library copies them, and keeps no pointer to them.
 * - Arguments are checked before anything is sent: BIZLOCK_INVALID, and why.
 * - The library never prints, exits, or touches signals. But the connector makes the process ignore
 *   SIGPIPE when it is first used, and a lost connection raises SIGPIPE.
 * - Durations are milliseconds. `wait_ms`: 0 = try once, -1 = for ever, n = at most n.
 *
 * Link bizlock and your program against the same connector (libmariadb or
 * libmysqlclient): a process that loads both is unsupported.
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
 * TIMEOUT      wait_ms passed; the message names the holder, or the table that somebody has locked.
 *              With any wait_ms: the server's answer came after the lease
 * CANCELLED    bizlock_interrupt(), bizlock_cancel_wait(), bizlock_stop(), bizlock_close() or
 *              bizlock_cancel() ended the wait
 * LOST         the hold is over: its lease ran out, or it was broken
 * NOT_OWNER    this owner holds no such lock; nothing was changed
 * UNKNOWN      the outcome could not be found out; see "the network breaks"
 * CONN         no connection to the server could be had; nothing was done
 * DB           the server refused the statement; the message has the server's words and number. Or
 *              another session has locked the table (LOCK TABLES, a backup, an ALTER), or rows of
 *              the table: the message says so
 * SCHEMA       tables are missing, need a newer library, or are not as they must be; the message
 *              says what to do. If tables are dropped while a client is open, any call may answer
 *              this, after half a second of trying
 * INVALID      a bad argument or option; nothing was sent
 * MISUSE       the call is out of order: before open, after fork, ...
 * LIMIT        a limit was reached (re-entry depth, size of a buffer)
 * NOMEM        out of memory
 * UNSUPPORTED  a server that bizlock cannot work with
 * STALE        the transaction began too early: it reads what was there before this owner had the
 *              lock (bizlock_tx.h); roll back, and begin it anew */
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

/* A later version may answer a number above 255 where this one answers one of these, to be more
 * exact: BIZLOCK_PRIMARY() of that number is the answer of this version. Compare the primary
 * number, and a program that was written for this version goes on to work. */
#define BIZLOCK_PRIMARY(rc) ((rc)&255)

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

/* Structs begin with their own size, set by the side that makes the struct, so that they can grow
 * at their ends. The library takes and fills the smaller of two sizes: the caller's, and that which
 * it knows. What it does not know of the caller's options must be zero, or the call is INVALID, and
 * so it is with a size that no release ever had. A function of the program's that is called with a
 * struct looks at its size before it reads a field that is newer than the oldest library it may be
 * linked with. */

/* Flags of bizlock_acquire_opts. */
#define BIZLOCK_NO_RENEW 1u /* do not renew this hold automatically, unless a level asks for it */
#define BIZLOCK_RENEW 16u   /* renew it, although the client's option renew is off */
#define BIZLOCK_LOCAL_REENTRY 2u /* count re-entries in memory: no round trip, no new lease */
#define BIZLOCK_NO_QUEUE                                                                           \
	4u                /* no doorbell for this call: poll instead. Slower by two statements,    \
	                     and by 100 ms if another contender has the doorbell; with             \
	                     BIZLOCK_SHARED, that contender goes first, for 200 ms at most */
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
	uint32_t min_hold_ms; /* how long from the acquisition on nobody else gets the lock,
	                         even if it is released earlier or its holder dies. For
	                         work that runs at most once in a period, however the
	                         clocks of the machines that start it differ. 0: none */
	uint32_t max_hold_ms; /* the hold ends that long after the acquisition, so that a
	                         holder that hangs loses the lock; bizlock_renew() may
	                         lengthen it. Less than 100 is 100; UINT32_MAX: none;
	                         0: the client's option max_hold_ms */
	uint32_t limit;       /* with BIZLOCK_SHARED: how many owners share the lock at most;
	                         0: any number */
	uint32_t reserved;    /* 0 */
} bizlock_acquire_opts;

#define BIZLOCK_ACQUIRE_OPTS_INIT                                                                  \
	{                                                                                          \
		sizeof(bizlock_acquire_opts), -1, 0, 0, NULL, NULL, 0, 0, 0, 0                     \
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
	                      sharer has. 0: an exclusive owner */
} bizlock_grant;

#define BIZLOCK_GRANT_INIT                                                                         \
	{                                                                                          \
		sizeof(bizlock_grant), 0, 0, 0, 0, 0                                               \
	}

/* ---- a client: new, set, open, close ------------------------------------ */

/* Makes a client that is not connected yet. NOMEM, INVALID (ret is NULL). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_new(bizlock **ret);

/* Sets an option, before bizlock_open(). Precedence: bizlock_set(), the environment
 * (BIZLOCK_<OPTION>), the groups [bizlock] and then [client] of option files, the default.
 *
 *   host                localhost, which means the socket, when there is one.
 *                       Or several, such as "db1,db2:3307,[::1]:3308": tried in this
 *                       order; hosts that are down, silent or refuse writes are skipped
 *   port                3306; for hosts that name no port
 *   socket              the connector's default
 *   user, password      the connector's defaults: the login name; none
 *   database            required: where the tables are
 *   defaults_file       read instead of /etc/my.cnf, /etc/mysql/my.cnf, ~/.my.cnf; "": no file
 *   defaults_group      bizlock; the group that is read besides [client]
 *   defaults_group_suffix   none; [clientSUFFIX] and [bizlockSUFFIX] override those groups
 *   ssl_mode            preferred | disabled | required | verify_ca | verify_identity
 *   ssl_ca, ssl_capath, ssl_cert, ssl_key, ssl_crl, ssl_crlpath, ssl_cipher, ssl_fp, ssl_fplist,
 *   tls_version, tls_ciphersuites    for TLS, as in the servers' own clients
 *   auth_plugins        none; more plugins by which a server may ask for the password
 *   table_prefix        "", up to 32 of [A-Za-z0-9_], put before each table name
 *   lease_ms            30000 (100 to 86400000)
 *   renew               on | off: leases are renewed until released
 *   max_hold_ms         0 (to 4294967295): the longest time that a hold may last; less than 100
 *                       is 100; 0 and 4294967295: for ever
 *   release_on_close    on | off: bizlock_close() releases what is held
 *   connect_timeout_ms  5000 (1 to 600000), rounded up to whole seconds, because the
 *                       connectors know no finer unit
 *   io_timeout_ms       10000 (1 to 600000), for each read and each write; rounded up, too
 *   open_wait_ms        0 (to 4294967295): how long bizlock_open() keeps trying while no
 *                       server can be reached, during a restart for example. If the server
 *                       is full, it tries for connect_timeout_ms at least
 *   max_connections     16 (1 to 1000)
 *   queue               auto | off: wait at the doorbell, where the server has it; or poll
 *   combine             on | off: calls of several threads may share a transaction
 *   runtime_dir         a directory in which each client has a file, locked by the kernel as long
 *                       as a process of the client lives. A holder that was killed is thereby
 *                       known to be gone: clients of the same host, with the same directory, take
 *                       its locks over at once, with BIZLOCK_TOOK_OVER, and do not wait for the
 *                       lease. Default: /run/bizlock, else $XDG_RUNTIME_DIR/bizlock, whichever can
 *                       be used first. "": none. See bizlock_set(3)
 *
 * Only `password` may also be set while the client is open, by any thread and beside any call:
 * connections that are made from then on log in with it. A password that came from an option file
 * is read from the file again when a server refuses it.
 *
 * INVALID: unknown option or bad value. MISUSE: open already, or being opened. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_set(bizlock *, const char *option, const char *value);

/* Reads environment and option files, connects once, and checks the server. It keeps trying while
 * the server is full, or away for a moment: see open_wait_ms. bizlock_interrupt() or bizlock_stop()
 * during that time ends the call with CANCELLED. After a failure the client may be set and opened
 * again, or closed. CONN; INVALID: an option from environment or file; UNSUPPORTED: server
 * too old, or STATEMENT binlog; SCHEMA: the message says what to do; MISUSE: another thread is
 * opening it; DB, NOMEM. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_open(bizlock *);

/* Ends waits of other threads with CANCELLED, waits until their calls have returned, releases what
 * is still held (every level; option release_on_close), closes the connections and frees the
 * client. It does not release lost holds, holds of ended threads, and holds that an open
 * transaction has fenced. Takes NULL and clients that were never opened. A function that the
 * library calls must not call it. In a forked child it only frees memory.
 *
 * If the server does not answer, it returns within io_timeout_ms, or connect_timeout_ms if that is
 * longer.
 *
 * OK: all that it had to release is released. UNKNOWN: the server did not answer, or a transaction
 * has fenced a lock; what was not released stays locked until its lease ends. The client is freed
 * in both cases. */
BIZLOCK_API int bizlock_close(bizlock *);

/* Creates what is missing of the tables in the configured database. Idempotent. Needs no prior
 * open, and the privilege CREATE. CONN, DB, INVALID, UNSUPPORTED; SCHEMA: the tables need a newer
 * library, or an existing table is not as it must be. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_migrate(bizlock *);

/* ---- the lease lock ----------------------------------------------------- */

/* Takes `key` for its owner, or one level deeper if that owner has it already. opts NULL: the
 * calling thread, default lease, and a wait FOR EVER. A caller that wants to try once says so:
 *
 *     bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
 *
 *     opts.wait_ms = 0;
 *     rc = bizlock_acquire(lock, key, &opts, NULL); // BIZLOCK_BUSY: somebody else has it
 *
 * ret may be NULL.
 *
 * First acquisition: a new fence. Re-entry: the same fence, depth + 1, the lease starts anew unless
 * the rest of it is longer. For the whole hold: it is renewed if any level asks for that; the
 * latest end of a min_hold_ms and the earliest end of a max_hold_ms count, each from the start of
 * its level. The note stays that of the first level.
 * BUSY, TIMEOUT, CANCELLED: not obtained; or an open transaction has fenced the lock (see
 * bizlock_fence()), or another thread waits for the key under this owner's name. LOST: this owner
 * held the lock and lost it; release every level before acquiring again. LIMIT: too deep.
 * UNKNOWN, CONN, DB, SCHEMA, INVALID, MISUSE, NOMEM.
 *
 * Threads of this process line up in memory first, in order of arrival; the first of them waits at
 * the server's doorbell, in order of arrival there. A release may instead hand the lock to the
 * client's next thread, at most 16 times in a row and for 250 ms. A call that tries once may take
 * up to 400 ms if the lock is free and another contender for it hangs. While another session has
 * locked the table, a call that tries once takes a second and answers DB, and a call that waits
 * answers TIMEOUT up to a second late, because servers wait for tables for whole seconds. */
BIZLOCK_API BIZLOCK_MUST_CHECK int
bizlock_acquire(bizlock *, bizlock_key, const bizlock_acquire_opts *opts, bizlock_grant *ret);

/* Acquires all of the keys, or none. One statement takes all keys that are new, so that two callers
 * that want the same keys in different orders never wait for each other in a circle. 1 to 256 keys,
 * each once; a key that this owner holds already goes one level deeper. opts: as above, the same
 * for each key; wait_ms is for all keys together. ret: n grants, in the order of the keys, or NULL;
 * only the size of the first grant is looked at. After an error nothing is held that was not held
 * before. All keys are taken exclusively. INVALID: the flag BIZLOCK_SHARED. MISUSE: this owner
 * shares one of the keys; release that key first. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_acquire_all(bizlock *, const bizlock_key *keys, size_t n,
                                                       const bizlock_acquire_opts *opts,
                                                       bizlock_grant *ret);

/* Releases one level of each key, also after the release of another key has failed. Returns the
 * first error, or OK. The keys, each once, need not have been acquired together. */
BIZLOCK_API int bizlock_release_all(bizlock *, const bizlock_key *keys, size_t n,
                                    const char *owner);

/* Releases one level; the release of the last level frees the lock and wakes the next waiter.
 * owner NULL: the calling thread. *ret_depth: levels left; ret_depth may be NULL.
 * NOT_OWNER: this owner never acquired the lock; nothing was sent. LOST: the lease ran out, or the
 * lock was broken. The row of a last level is removed later after CONN, UNKNOWN: as soon as the
 * server can be reached; BUSY: as soon as the transaction that has fenced the lock has ended; DB:
 * as soon as the server accepts it, for example when another session has unlocked the table. After
 * all of these the level is released in this client. TIMEOUT: the level is not released, because
 * another thread's call on the hold gets no answer. */
BIZLOCK_API int bizlock_release(bizlock *, bizlock_key, const char *owner, uint32_t *ret_depth);

/* Starts the lease anew. lease_ms: its length from now on, in later renewals too; 0: the length it
 * has. NOT_OWNER, LOST, CONN, UNKNOWN, DB, INVALID; BUSY: fenced, and unchanged; TIMEOUT:
 * unchanged, because another call on the hold gets no answer, or no connection was free. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_renew(bizlock *, bizlock_key, const char *owner,
                                                 uint32_t lease_ms);

/* Gives up a part of an exclusive hold: from here on this owner shares the lock, as if acquired
 * with BIZLOCK_SHARED and no limit. There is no gap: nobody else has the lock exclusively in
 * between. Sharers that wait come in at once, unless a contender that wants the lock alone came
 * before them. The whole hold is shared, with its fence, all its levels, its lease and its
 * min_hold_ms; it counts as one where others share the lock with a limit. Nothing is done if it is
 * shared already. The other way round there is nothing: release, and acquire. NOT_OWNER, LOST,
 * CONN, DB; BUSY: fenced, and exclusive as before; TIMEOUT: unchanged, because another call on the
 * hold gets no answer, or no connection was free. UNKNOWN: it is shared or exclusive: act as
 * a sharer. Call again to find out, or release; if it is shared, and neither was done before the
 * next renewal, it is lost. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_downgrade(bizlock *, bizlock_key, const char *owner);

/* How many milliseconds this owner may still rely on the lock. Makes no round trip. <= 0: do not
 * touch what the lock guards. */
BIZLOCK_API int64_t bizlock_left_ms(bizlock *, bizlock_key, const char *owner);

/* The result of the last automatic renewal of this hold. Makes no round trip. OK: it succeeded, or
 * none was due yet; CONN, DB, NOMEM: it failed, and bizlock_errmsg() has the server's words; BUSY:
 * fenced. After a failure the client tries again until the lease is over. NOT_OWNER, LOST. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_last_renewal(bizlock *, bizlock_key, const char *owner);

/* What bizlock_acquire() would have told of this hold now: fence, depth, the length of its lease,
 * slot; flags are 0. Makes no round trip. ret: its size is set by the caller, as by
 * BIZLOCK_GRANT_INIT. NOT_OWNER; LOST: also if the lease is over by the local clock; INVALID,
 * MISUSE. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_held(bizlock *, bizlock_key, const char *owner,
                                                bizlock_grant *ret);

/* Asks the server whether the hold stands. OK, NOT_OWNER, LOST, CONN, DB. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_verify(bizlock *, bizlock_key, const char *owner);

/* The same for any client that was told the key and the fence, such as one of a forked child, or of
 * a program that carries out the holder's work. OK: whoever was granted this fence holds the lock,
 * exclusively or shared, or has exported it. The answer is true for the moment in which the server
 * gave it; for a transaction there is bizlock_tx_verify_fence(). LOST: the hold is over, or there
 * was none; the message names the present holder. CONN, DB, TIMEOUT, NOMEM, INVALID, MISUSE. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_verify_fence(bizlock *, bizlock_key, uint64_t fence);

/* Calls fn(arg, key, fence) once for each hold that is lost, of any owner: as soon as its lease is
 * over by the local clock, the server says that it is, or the thread that holds it has ended. A
 * request's `done` (bizlock_async.h) is called before fn reports the loss of its hold.
 *
 * A thread of the library calls fn, one call at a time, with no lock of the library held, on a
 * stack of 1 MiB. fn may call any function but bizlock_close(). So fn can release the hold of a
 * named owner, but not that of a thread. While fn runs, no other loss is reported. key is valid
 * during the call.
 *
 * fn NULL: no function is called from now on. When this function returns, fn has replaced the
 * earlier fn; a call of the earlier fn may still be running. A hold that was lost while no function
 * was set is reported to the next fn, unless it was released since. */
BIZLOCK_API int bizlock_on_lost(bizlock *, void (*fn)(void *arg, bizlock_key, uint64_t fence),
                                void *arg);

/* A hold that was lost. Valid during the call. */
typedef struct bizlock_loss {
	size_t size; /* set by the library */
	bizlock_key key;
	const char *owner; /* its name, as it was passed in, to release by; NULL: a thread */
	uint64_t thread;   /* the number of that thread, as of gettid(2); 0: the owner is named */
	uint64_t fence;
} bizlock_loss;

/* bizlock_on_lost() for a function that is told who has lost the hold. A client has one function:
 * this call replaces that of bizlock_on_lost(), and the other way round. */
BIZLOCK_API int bizlock_on_loss(bizlock *, void (*fn)(void *arg, const bizlock_loss *), void *arg);

/* Hands a held lock, with its fence and depth, to another process or client. Writes to ret a text
 * for bizlock_import(): NUL-terminated, up to BIZLOCK_EXPORT_MAX bytes, printable ASCII without
 * spaces. From here on this client does not hold the lock; it stays locked until it is imported,
 * for one lease at most. UNKNOWN: nobody holds it now. BUSY: fenced, and held as before. NOT_OWNER,
 * LOST, CONN, DB; LIMIT: size. */
#define BIZLOCK_EXPORT_MAX 704
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_export(bizlock *, bizlock_key, const char *owner,
                                                  char *ret, size_t size);

/* Takes over an exported lock: `owner` of this client holds it from here on, and it is renewed.
 * max_hold_ms begins anew, as this client's option has it; min_hold_ms goes along. A text can be
 * imported once. LOST: it was imported before, or the lease is over. BUSY: an acquire of this key
 * ended UNKNOWN and its row is not removed yet, or a thread waits for the key under this name.
 * MISUSE: held already. INVALID: `text` is not an exported lock. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_import(bizlock *, const char *text, const char *owner,
                                                  bizlock_grant *ret);

/* Says of which lock `text` is, for an importer that was told no more: ret_type has
 * BIZLOCK_TYPE_MAX + 1 bytes, ret_id has BIZLOCK_ID_MAX + 1. Asks no server, and needs no prior
 * open, so that the text may have been imported, and the lease be over. INVALID, MISUSE. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_exported_key(bizlock *, const char *text, char *ret_type,
                                                        char *ret_id);

/* A new descriptor, with O_CLOEXEC, to be closed by the caller. As long as a process has it open,
 * this client's process counts as alive (option runtime_dir): so give it to a program that goes on
 * with the work under the lock after this process was killed. Forked children need none, but a
 * program that was started by exec does. -1: the client has no file in runtime_dir, or is not open.
 * Thread-safe. */
BIZLOCK_API int bizlock_life_fd(bizlock *);

/* Wakes every waiting thread of this client; their calls answer CANCELLED. A call that is about to
 * wait, or starts later, waits as usual: where a signal is to end the program, use bizlock_stop().
 * Async-signal-safe. */
BIZLOCK_API void bizlock_interrupt(bizlock *);

/* Ends the wait of a thread that acquires `key`, alone or with other keys, under this owner's name:
 * its call answers CANCELLED, and has acquired nothing; or another answer, if the wait was over by
 * then. Waits of others go on, in their order. owner: a name; a wait that is to be ended alone
 * needs one. A request has a number: bizlock_cancel(). NOT_OWNER: no thread of this client waits
 * for the key under this name. INVALID, MISUSE. */
BIZLOCK_API int bizlock_cancel_wait(bizlock *, bizlock_key, const char *owner);

/* on != 0: from now on nothing new is acquired, until a call with on 0. All acquisitions, those
 * that wait and those that start later, answer CANCELLED, even with wait_ms 0 and for a free lock.
 * So do bizlock_import() and bizlock_reap(). All else works as ever: re-entry, release, renew. It
 * may be called before bizlock_open(). Async-signal-safe; a signal handler that calls it has to be
 * gone before bizlock_close(). */
BIZLOCK_API void bizlock_stop(bizlock *, int on);

/* ---- errors ------------------------------------------------------------- */

/* The text of an error, and its name, such as "BIZLOCK_BUSY". Static, for any number, known or
 * not. */
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
