/* bizlock, the part for programs with an event loop: requests that are started, and done later.
 * No call here waits for the server. What watches a descriptor (poll, epoll, libuv, libevent)
 * tells when something is done. Any number of requests may be under way, waits among them: they
 * share the client's connections (option max_connections) and a thread of its own, which the first
 * request starts; more threads while a server keeps that one waiting. The rules of bizlock.h hold
 * here too.
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
 * bizlock_renew(), bizlock_left_ms() and so on take them by their owner's name, and what
 * was acquired by bizlock_acquire() under a name can be released by bizlock_release_start().
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
 * twice; 0 is none. */

/* How a request has ended. The library fills it, and what it points to is valid while `done`
 * runs. */
typedef struct bizlock_result {
	size_t size;           /* sizeof(bizlock_result), as the library that is linked has it */
	uint64_t request;      /* its number */
	int rc;                /* what a call that waits would have answered */
	uint32_t server_error; /* why, as a number of the server's or connector's; 0: none */
	const char *message;   /* why rc is not BIZLOCK_OK, as bizlock_errmsg() tells it; else "" */
	bizlock_key key;
	const char *owner;
	const bizlock_grant *grant; /* what was granted; NULL unless rc is BIZLOCK_OK and the
	                               request is an acquisition */
} bizlock_result;

/* Called exactly once for each request that was started: by bizlock_dispatch() or
 * bizlock_close(), in the thread that calls these, with no lock of the library held; never by the
 * function that starts the request. It may call any function but bizlock_close(): start further
 * requests, cancel others, release. Those that wait, such as bizlock_acquire(), keep the
 * event loop waiting. bizlock_errmsg() says what result->message does, until the next call of the
 * thread that fails. */
typedef void bizlock_done(void *arg, const bizlock_result *result);

/* Starts to acquire `key`, as bizlock_acquire() does: opts.wait_ms, lease_ms, flags, note,
 * min_hold_ms, max_hold_ms and re-entry mean the same. opts.owner must be a name, because no thread
 * can own what it does not wait for; so opts must not be NULL. The wait begins now.
 * done must not be NULL. ret may be NULL; else *ret is the number of the request, which is there
 * before `done` can be called.
 *
 * INVALID: an argument, or no owner. MISUSE: the client is not open. NOMEM. Then nothing is under
 * way, and `done` will not be called. Everything else is told to `done`: OK, BUSY, TIMEOUT, LOST,
 * LIMIT, UNKNOWN, CONN, DB, SCHEMA, MISUSE, NOMEM as of bizlock_acquire(); CANCELLED: by
 * bizlock_cancel(), bizlock_interrupt(), bizlock_stop() or bizlock_close(), and nothing was
 * acquired.
 *
 * A release wakes a request that waits for it. A request polls with BIZLOCK_NO_QUEUE, with
 * queue=off, and with fewer than 4 connections. A request that meets sharers also polls where
 * nobody can wake it: in a cluster with several primaries, or where the server refuses KILL QUERY.
 * The pauses grow from 2 to 128 ms; the first in line beside sharers looks every 20 ms. Many
 * requests under way make both longer. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_acquire_start(bizlock *, bizlock_key,
                                                         const bizlock_acquire_opts *opts,
                                                         bizlock_done *done, void *arg,
                                                         uint64_t *ret);

/* Starts to give back one level of what `owner`, a name, holds, as bizlock_release() does. It
 * cannot be cancelled. bizlock_left_ms() and the others answer by how far it has come: start
 * nothing else for this key and owner before it is done. done and ret: as above.
 *
 * INVALID: an argument, or no owner. MISUSE, NOMEM. Then nothing is under way. To `done`: OK,
 * NOT_OWNER, LOST, CONN, UNKNOWN, BUSY, TIMEOUT, DB, NOMEM as of bizlock_release(). */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_release_start(bizlock *, bizlock_key, const char *owner,
                                                         bizlock_done *done, void *arg,
                                                         uint64_t *ret);

/* Starts the lease of what `owner`, a name, holds anew, as bizlock_renew() does: lease_ms, or 0:
 * its length now. It cannot be cancelled. done and ret: as above.
 *
 * INVALID: an argument, or no owner. MISUSE, NOMEM. Then nothing is under way. To `done`: OK,
 * NOT_OWNER, LOST, BUSY, CONN, UNKNOWN, DB, NOMEM as of bizlock_renew(); TIMEOUT: another call on
 * the hold, or a renewal of the library's own, gets no answer. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_renew_start(bizlock *, bizlock_key, const char *owner,
                                                       uint32_t lease_ms, bizlock_done *done,
                                                       void *arg, uint64_t *ret);

/* Ends the wait of an acquisition. Its `done` is called soon, with CANCELLED; or with another
 * answer, if the request was done before this call and only its `done` not called yet. What the
 * server grants later is given back. Any thread may call it at any time, also from within a `done`.
 *
 * OK: a request that has ended, and one that is no acquisition, stay as they are. INVALID: this
 * client has never given out that number; 0 is such a number. MISUSE: the client is not open. */
BIZLOCK_API int bizlock_cancel(bizlock *, uint64_t request);

/* A descriptor that is readable while bizlock_dispatch() has something to do. It is the client's,
 * the same for each call, open until bizlock_close(): watch it for input, neither read nor close
 * it. From this call on, bizlock_dispatch() also calls the function of bizlock_on_lost(), which
 * until then a thread of the library calls. -1: it could not be made, or the client is not open;
 * bizlock_errmsg() says why. */
BIZLOCK_API int bizlock_fd(bizlock *);

/* Calls the `done` of each request that is done, and then the function of bizlock_on_lost() for
 * each lock that is lost, in the calling thread. Never waits. What becomes done while it runs may
 * be left to the next call: the descriptor then stays readable. *ret_calls: how many functions it
 * has called; ret_calls may be NULL. Several threads may call it at the same time, and share the
 * calls; each loss is told by one of them, one after the other.
 * INVALID, MISUSE: the client is not open. */
BIZLOCK_API BIZLOCK_MUST_CHECK int bizlock_dispatch(bizlock *, unsigned *ret_calls);

#ifdef __cplusplus
}
#endif

#endif
