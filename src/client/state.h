/* The client: what bizlock.h calls `bizlock`, one call on it, and who may touch what.
 *
 * Threads. Callers come and go, any number of them. Three threads are the client's own;
 * three more kinds are started when they are needed.
 * Each has the work that fits what may keep it waiting:
 *   - the loss watch (hold/loss.c) looks at the clock and at threads that have ended, and
 *     sends nothing, so that no server can keep it from telling a loss in time. So it also ends
 *     connections that keep the others busy for too long (conn/cut.c). While it is in the user's
 *     function, which may send, another thread stands in for that;
 *   - the renewer (hold/renewer.c) sends renewals and nothing else, on a connection of its
 *     own, or, as long as it has none, on one of the pool: whatever else it waited for would
 *     cost leases;
 *   - the janitor (giveback/janitor.c) removes what calls could not give back, keeps idle
 *     connections alive, and asks whether the server is there while others sleep. It may hang
 *     as long as the network does, and costs nobody a lease;
 *   - the watch thread (watch/watch.c) is there once more keys were waited for than connections
 *     can sleep at. It looks after those that watch, and wakes the threads whose keys are free;
 *   - the trace's thread (core/trace.c) is there while a function of bizlock_on_trace() is set,
 *     and calls it: whatever that waits for, no lock is renewed later;
 *   - the request threads (request/ops.c) are there once bizlock_async.h was used. The first
 *     one runs all requests, and waits for nothing but answers of the server. If an answer takes
 *     more than 10 ms, a second thread runs the other requests. More threads sleep at the
 *     doorbells of hot keys, each for one request, as long as connections are left for that.
 *
 * One mutex, `mu`, guards all of the client, except the atomics, the renewer's own part, and
 * what does not change between open and close (config, process, server, sql, bell_seed,
 * serial, stamp). There are two more, that of store/hosts/failover.c, which chooses among several
 * hosts, and that of core/trace.c. Each is taken last, and for a moment. Each dial has a thread,
 * which ends with it (store/hosts/race.c). Nobody waits for one that its server does not let end.
 *
 * The client is a monitor: a call takes the mutex, and lets go of it only
 *   - while a statement is under way, on a connection that is lent to it;
 *   - while a connection is made or closed (conn/pool.c), by the thread it is lent to;
 *   - while it waits: on a condition variable, or for a pause to be over (bl_call_sleep);
 *   - while it runs the user's code (the function of bizlock_on_lost()).
 * Functions of the rooms are entered with the mutex held, unless they say otherwise; those
 * that start and stop a thread, with the mutex free. So are the doors, bl_client_...(): a door
 * of request/ and giveback/ takes the mutex for all of a call's work; request/in_tx.c, admin/ and
 * close.c take it for one step after the other. After a function that sends or waits, only what was
 * given to this thread is as it was:
 *
 *   a connection that is lent      belongs to its borrower, from bl_pool_take() to bl_pool_put().
 *   a hold that is `busy`          belongs to the call that made it busy. Other calls that need it
 *                                  wait on `changed`. Meanwhile others may renew it or note a
 *                                  fence, and may move it from HELD to LOST (the loss watch,
 *                                  the renewer, a break, a check in a transaction): so its
 *                                  state is looked at anew after each statement.
 *   a hold that `stays`            is busy, and renewed nevertheless: its call neither
 *                                  shortens the lease nor gives the hold away.
 *   a hold that is `renewing`      has its row in a statement of the renewer's.
 *                                  bizlock_renew() waits until that is answered: a late
 *                                  renewal would undo a lease which that call has shortened.
 *   a place in a wait queue        is its thread's own, on its stack, or its request's. While it
 *                                  is OFFERED, the thread that hands the lock over writes to it
 *                                  and to its hold, which is ACQUIRING (contest/handoff.c).
 *   a wait (watch/watch.h)          is its thread's or request's, and a watcher's meanwhile:
 *                                  whoever leaves it last frees it. Watchers are the watch
 *                                  thread's own.
 *   a request (request/op.h)          is one request thread's while it RUNS or SLEEPS. Whoever
 *                                  cancels or wakes it meanwhile leaves a note; a cancel also ends
 *                                  its sleep.
 *   a job (conn/jobs.h)            is its thread's own, too. From RUNS until its event is set, it
 *                                  belongs to the thread that runs the batch, and its own waits.
 *
 * The order in which things are taken, so that nobody waits in a circle: first the hold (busy),
 * then the place in the wait queue, then a connection, then the doorbell at the server, then the
 * row. Several keys are taken in the order of the primary key, and their doorbells all or
 * none. Keys that the owner of a call holds already are re-entered last; their holds are
 * not busy while the call waits for the other keys. A thread that sleeps at a doorbell has no other
 * doorbell on that connection, and one connection is always left for those that release. A
 * connection that has watched is closed afterwards: a late KILL QUERY then meets nobody's
 * statement.
 *
 * Signal handlers may call bizlock_interrupt() and _stop(): they touch `stamp`, `wakes`, `stopped`,
 * `state` and the wake_fds, which are there as long as the client is open. */
#ifndef BL_CLIENT_STATE_H
#define BL_CLIENT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/life.h"
#include "client/conn/pool.h"
#include "client/conn/yields.h"
#include "client/giveback/janitor.h"
#include "client/hold/loss.h"
#include "client/hold/renewer.h"
#include "client/hold/slots.h"
#include "client/hold/wait_queue.h"
#include "client/request/ops.h"
#include "client/watch/watch.h"
#include "core/held.h"
#include "core/numbers.h"
#include "core/trace.h"
#include "store/bell/bell.h"
#include "store/session/server.h"

/* This many locks can be shared by turns without a fence being drawn twice. */
#define BL_HEADERS 256

/* What open builds belongs to its thread while the client is OPENING, and is there from OPEN on. */
enum bl_client_state { BL_CLIENT_NEW, BL_CLIENT_OPENING, BL_CLIENT_OPEN, BL_CLIENT_CLOSING };

struct bizlock {
	pthread_mutex_t mu;
	pthread_cond_t changed;             /* a hold is no longer busy, the last call has left, or
	                                       open has ended */
	_Atomic enum bl_client_state state; /* changed with the mutex held */
	unsigned calls;                     /* calls under way; close waits for them */
	uint64_t serial;                    /* of this client in its process, never 0 */
	uint64_t stamp;                     /* of that process; see bl_process_stamp() */
	uint64_t jitter;                    /* state of the generator */
	atomic_uint wakes;   /* counts interrupts: a call that sees it change is cancelled */
	atomic_bool stopped; /* each call is interrupted from the beginning */
	atomic_bool closing; /* bizlock_open() waits for no server any more */

	struct bl_config set;    /* by bizlock_set() */
	struct bl_config config; /* in force since the client is open: only the password changes */
	struct bl_failover *failover;
	struct bl_process process;
	struct bl_life life; /* by which other clients of this host see that this process lives */
	struct bl_server server;
	struct bl_sql sql;
	bool bells;             /* doorbells are used */
	uint64_t largest_fence; /* that it was ever granted */
	unsigned overslept;     /* bl_shared_polls() */
	bl_time in_vain_at;     /* a statement has waited in vain for a lock of the server's */
	bl_time locked_at;      /* the lock table was found to be locked */
	/* Fences of slots 0 that sharers have seen, by the hashes of their keys. */
	uint64_t headers[BL_HEADERS];
	struct bl_slots slots;
	struct bl_sha256 bell_seed;
	struct bl_pool pool;
	struct bl_held held;
	struct bl_queues queues;
	struct bl_list waits; /* acquisitions of threads that are under way */
	struct bl_yields yields;
	struct bl_loss_watch loss_watch;
	struct bl_renewer renewer;
	struct bl_janitor janitor;
	struct bl_watch watch;
	struct bl_ops ops;
	struct bl_numbers numbers; /* atomics */
	struct bl_trace trace;     /* has a mutex of its own */
};

static inline void bl_lock(struct bizlock *b)
{
	pthread_mutex_lock(&b->mu);
}

static inline void bl_unlock(struct bizlock *b)
{
	pthread_mutex_unlock(&b->mu);
}

/* A line about a hold. */
#define BL_TRACE_HOLD(b, h, ...) BL_TRACE(&(b)->trace, &(h)->key, &(h)->owner, __VA_ARGS__)

/* One call on one key. Its fields do not change, but for four. key.slot is set once it is known,
 * and so is `bell`: see bl_call_bell(). A request sets `wakes` and io_deadline anew before a step.
 * Cancelling a wait sets `wakes`. */
struct bl_call {
	struct bizlock *client;
	struct bl_key key;
	struct bl_owner owner;
	char owner_full[BL_OWNER_MAX + 1];
	char bell[BL_BELL_MAX + 1]; /* "": not asked for so far */
	bl_time deadline;           /* until when it waits for the lock */
	bl_time io_deadline; /* of what has to be done in any case: a look after a lost reply, a
	                        turn in the pool. Never before `deadline` */
	atomic_uint wakes;   /* the client's, when the call began */
	bool comes_again;    /* a request that tries again later: see struct bl_patience */
	struct bl_err *err;
};

/* The mutex may be free or held. */
void bl_call_begin(struct bl_call *call, struct bizlock *b, const struct bl_key *key,
                   const struct bl_owner *owner, int64_t wait_ms, struct bl_err *err);

/* The name of the key's doorbell. It is made when somebody asks for it first: to make it takes
 * longer than a re-entry that is counted in memory. The mutex may be free or held. */
const char *bl_call_bell(struct bl_call *call);

/* Whether an interrupt has ended the wait of this call. A call that waits for nothing, such as
 * a release, goes on. The mutex may be free or held; for bl_call_check(), too. */
bool bl_call_interrupted(const struct bl_call *call);

/* CANCELLED if an interrupt came since the call began, else OK. */
int bl_call_check(const struct bl_call *call);

/* Interrupts this call alone. It does not wake the thread that sleeps in the call. */
void bl_call_interrupt(struct bl_call *call);

/* Both let go of the mutex and sleep until `until` or io_deadline. Any interrupt ends a sleep
 * early. Only a close, or an interrupt that ends this call's wait, ends a pause: so a call that
 * goes on after an interrupt still pauses between its tries. */
void bl_call_sleep(const struct bl_call *call, bl_time until);
void bl_call_pause(const struct bl_call *call, bl_time until);

uint64_t bl_random(struct bizlock *b); /* for jitter */

/* Before a statement that asks for min_hold_ms: a lock must rest although its holder died, and the
 * row does not tell a rest from a lease. So nobody may prove any more that this client is gone.
 * Lets go of the mutex. */
void bl_hide_life(struct bizlock *b);

/* What an acquisition asks for. */
struct bl_request {
	uint32_t lease_ms, min_hold_ms, max_hold_ms, flags;
	bool own_max_hold; /* max_hold_ms is from this call, not from the client's options */
	uint32_t limit;    /* how many owners may share the lock; 0: any number */
	const char *note;
	bool once; /* wait_ms 0 */
};

/* The lease that is written to the row: nobody gets the lock before min_hold_ms is over, even if
 * its owner dies. The owner itself relies on lease_ms alone. */
static inline uint32_t bl_request_row_ms(const struct bl_request *r)
{
	return r->min_hold_ms > r->lease_ms ? r->min_hold_ms : r->lease_ms;
}

#endif
