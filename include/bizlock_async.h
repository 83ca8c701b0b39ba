/* bizlock for programs with an event loop: requests that are started, and done later. No call here
 * waits for the server. The event loop (poll, epoll, libuv, libevent) watches a descriptor that
 * becomes readable when a request is done. Any number of requests may be under way, also those that
 * wait for a lock: they share the client's connections (option max_connections) and a thread, which
 * the first request starts. While a server keeps that thread waiting, there are more threads. The
 * rules of bizlock.h hold here too.
 *
 *     extern bizlock_done on_done; // notes that it is done, and how
 *     int finished = 0;
 *     struct pollfd done = { .fd = bizlock_fd(lock), .events = POLLIN };
 *     bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
 *
 *     opts.owner = "task-17"; // must be named
 *     rc = bizlock_acquire_start(lock, key, &opts, on_done, &finished, NULL);
 *     while (rc == BIZLOCK_OK && !finished && poll(&done, 1, -1) >= 0)
 *         rc = bizlock_dispatch(lock, NULL); // calls on_done(&finished, result)
 *
 * Locks that are acquired this way are locks like all others: bizlock_release(),
 * bizlock_renew(), bizlock_left_ms() and so on take them by their owner's name, and
 * bizlock_release_start() releases a lock that bizlock_acquire() acquired under a name.
 * Threads and requests of one client that want the same key wait in one line.
 *
 * In a forked child all functions but bizlock_close() answer BIZLOCK_MISUSE, and do nothing;
 * the descriptor is the parent's, too: close it there, or leave it alone. */
#ifndef BIZLOCK_ASYNC_H
#define BIZLOCK_ASYNC_H

#include "bizlock.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A request is known by its number. A client counts its requests from 1 on, and uses no number
 * twice; 0 is no request. */

/* How a request has ended. The library fills it; its pointers are valid while `done` runs. */
typedef struct bizlock_result {
	size_t size;           /* sizeof(bizlock_result) in the library that is linked */
	uint64_t request;      /* its number */
	int rc;                /* what the call that waits would have answered */
	uint32_t server_error; /* the error number of the server or connector; 0: none */
	const char *message;   /* why rc is not BIZLOCK_OK, as bizlock_errmsg() tells it; else "" */
	bizlock_key key;       /* the first key */
	const char *owner;
	const bizlock_grant *grant;         /* what was granted of the first key; NULL unless rc is
	                                       BIZLOCK_OK and the request is an acquisition */
	size_t count;                       /* how many keys: 1 but for a request of several */
	const bizlock_key *keys;            /* all of them, in the order in which they were given */
	const bizlock_grant *const *grants; /* what was granted of each key, or NULL as `grant`;
	                                       pointers, because a grant may grow */
} bizlock_result;

/* Called exactly once for each request that was started: by bizlock_dispatch() or
 * bizlock_close(), in the thread that calls these, with no lock of the library held; never by the
 * function that starts the request. It may call any function but bizlock_close(): start further
 * requests, cancel others, release. Functions that wait, such as bizlock_acquire(), keep the event
 * loop waiting. bizlock_errmsg() returns the text of result->message, until the next call of the
 * thread that fails. */
typedef void bizlock_done(void *arg, const bizlock_result *result);

/* Starts to acquire `key`, as bizlock_acquire() does: opts.wait_ms, lease_ms, flags, note,
 * min_hold_ms, max_hold_ms and re-entry mean the same. opts.owner must be a name, because a thread
 * cannot own a lock that it does not wait for; so opts must not be NULL. The wait begins now.
 * done must not be NULL. ret may be NULL; else *ret is the number of the request, and is set before
 * `done` can be called.
 *
 * INVALID: an argument, or no owner. MISUSE: the client is not open. NOMEM. After these nothing is
 * under way, and `done` is not called. Everything else is told to `done`: OK, BUSY, TIMEOUT, LOST,
 * LIMIT, UNKNOWN, CONN, DB, SCHEMA, MISUSE, NOMEM as of bizlock_acquire(); CANCELLED: by
 * bizlock_cancel(), bizlock_interrupt(), bizlock_stop() or bizlock_close(), and nothing was
 * acquired.
 *
 * A release wakes a request that waits for it. A request polls with BIZLOCK_NO_QUEUE, with
 * queue=off, and with fewer than 4 connections. A request that waits for sharers also polls where
 * nobody can wake it: in a cluster with several primaries, or where the server refuses KILL QUERY.
 * The pauses grow from 2 to 128 ms; the first in line that waits for sharers looks every 20 ms.
 * Many requests under way make both longer. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_acquire_start(bizlock *, bizlock_key,
                                                         const bizlock_acquire_opts *opts,
                                                         bizlock_done *done, void *arg,
                                                         uint64_t *ret);

/* Starts to release one level of the lock that `owner`, a name, holds, as bizlock_release() does.
 * It cannot be cancelled. Start nothing else for this key and owner before it is done: until then
 * the answers of bizlock_left_ms() and the like depend on how far it has come. done and ret: as
 * above.
 *
 * INVALID: an argument, or no owner. MISUSE, NOMEM. After these nothing is under way. To `done`:
 * OK, NOT_OWNER, LOST, CONN, UNKNOWN, BUSY, TIMEOUT, DB, NOMEM as of bizlock_release(). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_release_start(bizlock *, bizlock_key, const char *owner,
                                                         bizlock_done *done, void *arg,
                                                         uint64_t *ret);

/* Starts to acquire all of the keys, or none, as bizlock_acquire_all() does: 1 to 256 keys, each
 * once, exclusively. opts.owner must be a name; opts.wait_ms is for all keys together. The keys are
 * copied. While the request waits, it holds none of the keys; after a cancel, at whatever time,
 * nothing is held that was not held before, unless `done` is told OK. result->grants: a grant for
 * each key, in the order of the keys.
 *
 * INVALID: an argument, a key that is there twice, the flag BIZLOCK_SHARED, or no owner. MISUSE,
 * NOMEM. After these nothing is under way. To `done`: the answers of bizlock_acquire_all(). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_acquire_all_start(bizlock *, const bizlock_key *keys,
                                                             size_t n,
                                                             const bizlock_acquire_opts *opts,
                                                             bizlock_done *done, void *arg,
                                                             uint64_t *ret);

/* Starts to release one level of each key, as bizlock_release_all() does, even if the release of
 * another key fails. The keys need not have been acquired together. `done` is called once, when the
 * last of the keys is done; result->rc is the first error in the order of the keys, or OK. It
 * cannot be cancelled; start nothing else for these keys and this owner before it is done.
 *
 * INVALID: an argument, a key that is there twice, or no owner. MISUSE, NOMEM. After these nothing
 * is under way. To `done`: the answers of bizlock_release_start(). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_release_all_start(bizlock *, const bizlock_key *keys,
                                                             size_t n, const char *owner,
                                                             bizlock_done *done, void *arg,
                                                             uint64_t *ret);

/* Starts to renew the lock that `owner`, a name, holds, as bizlock_renew() does. lease_ms: its
 * length from now on; 0: the length it has. It cannot be cancelled. done and ret: as above.
 *
 * INVALID: an argument, or no owner. MISUSE, NOMEM. After these nothing is under way. To `done`:
 * OK, NOT_OWNER, LOST, BUSY, CONN, UNKNOWN, DB, NOMEM as of bizlock_renew(); TIMEOUT: another call
 * on the hold, or an automatic renewal, gets no answer. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_renew_start(bizlock *, bizlock_key, const char *owner,
                                                       uint32_t lease_ms, bizlock_done *done,
                                                       void *arg, uint64_t *ret);

/* Ends the wait of an acquisition, of one key or several. Its `done` is called soon, with
 * CANCELLED; or with another answer, if the request was done before this call and only its `done`
 * not called yet. A lock that the server grants later is released. Any thread may call it at any
 * time, also from within a `done`.
 *
 * OK: also for a request that has ended or is no acquisition; such a request stays as it is.
 * INVALID: this client has never given out that number; 0 is such a number. MISUSE: the client is
 * not open. */
BIZLOCK_API int bizlock_cancel(bizlock *, uint64_t request);

/* A descriptor that is readable while bizlock_dispatch() has something to do. It is the client's,
 * the same for each call, open until bizlock_close(): watch it for input, neither read nor close
 * it. From this call on, bizlock_dispatch() also calls the function of bizlock_on_lost(); until
 * then a thread of the library calls that function. -1: the descriptor could not be made, or the
 * client is not open; bizlock_errmsg() says why. */
BIZLOCK_API int bizlock_fd(bizlock *);

/* Calls the `done` of each request that is done, and then the function of bizlock_on_lost() for
 * each lock that is lost, in the calling thread. Never waits. A request that becomes done meanwhile
 * may be left to the next call: the descriptor then stays readable. *ret_calls: how many functions
 * it has called; ret_calls may be NULL. Several threads may call it at the same time, and share the
 * work; each loss is told once, and one loss at a time.
 * INVALID, MISUSE: the client is not open. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_dispatch(bizlock *, unsigned *ret_calls);

#ifdef __cplusplus
}
#endif

#endif
