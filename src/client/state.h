/* The client: what bizlock.h calls `bizlock`, one call on it, and who may touch what.
 *
 * Threads. Callers come and go, any number of them. Three threads are the client's own, and
 * what may keep each of them waiting decides what is its work:
 *   - the loss watch (hold/loss.c) looks at the clock and at threads that have ended, and
 *     sends nothing, so that no server can keep it from telling a loss in time;
 *   - the renewer (hold/renewer.c) sends renewals and nothing else, on a connection of its
 *     own: whatever else it waited for would cost leases;
 *   - the janitor (lock/janitor.c) removes what calls could not give back, and keeps idle
 *     connections alive. It may hang as long as the network does, and costs nobody a lease.
 *
 * One mutex, `mu`, guards all of the client, but for what open has built before any other
 * thread could come (config, process, server, sql, bell_seed: they do not change until
 * close), and for the atomics. There is no second mutex, and so no order of them.
 *
 * The client is a monitor: a call takes the mutex once and keeps it, and lets go of it only
 *   - while a statement is under way, on a connection that is lent to it;
 *   - while a connection is made or closed (conn/pool.c), by the thread it is lent to;
 *   - while it waits: on a condition variable, or for a pause to be over (bl_call_sleep);
 *   - while it runs the user's code (the function of bizlock_on_lost()).
 * Functions of the rooms are entered with the mutex held, unless they say otherwise.
 * bl_client_...() are the doors: they are entered with the mutex free. After a function
 * that sends or waits, nothing is as it was, but for what has been given to this thread:
 *
 *   a connection that is lent      is its borrower's, from bl_pool_take() to bl_pool_put().
 *   a hold that is `busy`          is the call's that made it so. Others who come for it wait
 *                                  on `changed`. Only the loss watch, the renewer and a
 *                                  break may change it meanwhile, and only from HELD to LOST:
 *                                  so its state is looked at anew after each statement.
 *   a hold that `stays`            is busy, and renewed nevertheless: its call neither
 *                                  shortens the lease nor gives the hold away.
 *   a hold that is `renewing`      has its row in a statement of the renewer's: a call that
 *                                  would shorten its lease waits until that is answered, or
 *                                  the late renewal would lengthen it behind the call's back.
 *   a place in a wait queue        is its thread's own, on its stack; but from OFFERED on the
 *                                  thread that hands the lock over writes it (lock/handoff.c).
 *   a job (conn/jobs.h)            belongs to the thread that runs the batch, from RUNS to
 *                                  DONE; its own thread only waits.
 *
 * What is taken in which order, so that nobody waits in a circle: first the hold (busy), then
 * the place in the wait queue, then a connection, then the doorbell at the server, then the
 * row. Of several keys in the order of the primary key, and their doorbells all or none. A
 * thread that sleeps at a doorbell has no other one on that connection, and one connection
 * is always left for those that release.
 *
 * Signal handlers may call bizlock_interrupt(): it touches `wakes`, `state` and the wake_fds,
 * which are there as long as the pool is. */
#ifndef BL_CLIENT_STATE_H
#define BL_CLIENT_STATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/conn/pool.h"
#include "client/hold/loss.h"
#include "client/hold/renewer.h"
#include "client/hold/wait_queue.h"
#include "client/lock/janitor.h"
#include "core/held.h"
#include "core/numbers.h"
#include "store/bell.h"
#include "store/server.h"

/* What open builds is open's alone while it is OPENING, and is there from OPEN on. */
enum bl_client_state { BL_CLIENT_NEW, BL_CLIENT_OPENING, BL_CLIENT_OPEN, BL_CLIENT_CLOSING };

struct bizlock {
	pthread_mutex_t mu;
	pthread_cond_t changed;             /* a hold is no longer busy, the last call has left, or
	                                       open has ended */
	_Atomic enum bl_client_state state; /* changed with the mutex held */
	unsigned calls;                     /* inside; close waits for them */
	uint64_t serial;                    /* of this client in its process, never 0 */
	uint64_t mark;                      /* of that process; see bl_process_mark() */
	uint64_t jitter;                    /* state of the generator */
	atomic_uint wakes; /* counts interrupts: a call that sees it move is cancelled */

	struct bl_config set;    /* by bizlock_set() */
	struct bl_config config; /* in force, since the client is open: does not change */
	struct bl_process process;
	struct bl_server server;
	struct bl_sql sql;
	bool bells; /* doorbells are used */
	struct bl_hash bell_seed;
	struct bl_pool pool;
	struct bl_held held;
	struct bl_queues queues;
	struct bl_loss_watch loss_watch;
	struct bl_renewer renewer;
	struct bl_janitor janitor;
	struct bl_numbers numbers; /* atomics */
};

static inline void bl_lock(struct bizlock *b)
{
	pthread_mutex_lock(&b->mu);
}

static inline void bl_unlock(struct bizlock *b)
{
	pthread_mutex_unlock(&b->mu);
}

/* One call on one key. Its fields do not change. */
struct bl_call {
	struct bizlock *client;
	struct bl_key key;
	struct bl_owner owner;
	char owner_full[BL_OWNER_MAX + 1];
	char bell[BL_BELL_MAX + 1];
	bl_time deadline;    /* of the wait */
	bl_time io_deadline; /* of what has to be done in any case: looking after a lost reply, a
	                        turn in the pool. Never before `deadline` */
	unsigned wakes;      /* when the call began */
	struct bl_err *err;
};

/* The mutex may be free or held. */
void bl_call_begin(struct bl_call *call, struct bizlock *b, const struct bl_key *key,
                   const struct bl_owner *owner, int64_t wait_ms, struct bl_err *err);

/* Whether an interrupt has ended the wait of this call; one that waits for nothing, as a
 * release, goes on. The mutex may be free or held, as for the next one. */
bool bl_call_interrupted(const struct bl_call *call);

/* CANCELLED if an interrupt came since the call began, else OK. */
int bl_call_check(const struct bl_call *call);

/* Let go of the mutex and sleep until `until` or io_deadline. sleep: any interrupt ends it
 * early. pause: only one that ends this call's wait, or a close, so that a call which goes
 * on after an interrupt does not go on without rest. */
void bl_call_sleep(const struct bl_call *call, bl_time until);
void bl_call_pause(const struct bl_call *call, bl_time until);

uint64_t bl_client_random(struct bizlock *b); /* with the mutex held */

/* What an acquisition asks for. */
struct bl_request {
	uint32_t lease_ms, min_hold_ms, max_hold_ms, flags;
	const char *note;
	bool once; /* wait_ms 0 */
};

#endif
