/* The client: what bizlock.h calls `bizlock`, and what every call carries.
 *
 * One mutex guards all of it; no statement is sent and no user code is called
 * with the mutex held. */
#ifndef BL_CLIENT_CLIENT_H
#define BL_CLIENT_CLIENT_H

#include <pthread.h>
#include <stdatomic.h>

#include "client/janitor.h"
#include "client/line.h"
#include "client/pool.h"
#include "client/renewer.h"
#include "client/watch.h"
#include "core/held.h"
#include "core/numbers.h"
#include "store/bell.h"
#include "store/lock.h"
#include "store/server.h"

/* What open builds is open's alone while it is OPENING, and is there from OPEN on. */
enum bl_client_state { BL_CLIENT_NEW, BL_CLIENT_OPENING, BL_CLIENT_OPEN, BL_CLIENT_CLOSING };

struct bizlock {
	pthread_mutex_t mu;
	pthread_cond_t changed;             /* a hold is no longer busy, the last call has left, or
	                                       open has ended */
	_Atomic enum bl_client_state state; /* read by signal handlers */
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
	struct bl_lines lines;
	struct bl_watch watch;
	struct bl_renewer renewer;
	struct bl_janitor janitor;
	struct bl_numbers numbers; /* not guarded: atomics */
};

/* One call on one key. */
struct bl_call {
	struct bizlock *client;
	struct bl_key key;
	struct bl_owner owner;
	char owner_full[BL_OWNER_MAX + 1];
	char bell[BL_BELL_MAX + 1];
	bl_time deadline;    /* of the wait */
	bl_time io_deadline; /* of what has to be done all the same: looking after a lost
	                        reply, a turn in the pool. Never before `deadline` */
	unsigned wakes;      /* when the call began */
	struct bl_err *err;
};

void bl_call_begin(struct bl_call *call, struct bizlock *b, const struct bl_key *key,
                   const struct bl_owner *owner, int64_t wait_ms, struct bl_err *err);

/* Whether an interrupt has ended the wait of this call; one that waits for nothing, as a
 * release, goes on. */
bool bl_call_interrupted(const struct bl_call *call);

/* CANCELLED if an interrupt came since the call began, else OK. */
int bl_call_check(const struct bl_call *call);

bool bl_call_closing(const struct bl_call *call); /* the client is being closed */

/* Sleeps until `until` or the deadline; an interrupt ends it early. pause: only one that
 * ends this call's wait, so that who goes on all the same does not go on without rest. */
void bl_call_sleep(const struct bl_call *call, bl_time until);
void bl_call_pause(const struct bl_call *call, bl_time until);

uint64_t bl_client_random(struct bizlock *b);

/* Everything below is entered with the mutex free. */

/* By the one thread that has made it OPENING. */
int bl_client_open(struct bizlock *b, struct bl_err *err);
int bl_client_migrate(struct bizlock *b, struct bl_err *err);

/* false: leave the memory of *b alone as well (see close.c). */
bool bl_client_close(struct bizlock *b);

/* What open has built. forked: nothing of it is ours but the memory. */
void bl_client_tear_down(struct bizlock *b, bool forked);

/* Fills the configuration from environment and option files. */
int bl_sources_read(struct bl_config *config, struct bl_err *err);

/* A copy of what is in force, or else was set, so filled; to be freed. INVALID, NOMEM. */
int bl_client_config(struct bizlock *b, struct bl_config *ret, struct bl_err *err);

struct bl_request {
	uint32_t lease_ms, min_hold_ms, max_hold_ms, flags;
	const char *note;
	bool once; /* wait_ms 0 */
};

/* Levels that are counted in memory alone, without all that a call on the server takes.
 * false: nothing was done, and the row has to know. */
bool bl_client_deeper(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                      uint32_t lease_ms, uint32_t flags, bizlock_grant *ret);
bool bl_client_shallower(struct bizlock *b, const struct bl_key *key, const struct bl_owner *owner,
                         uint32_t *ret_depth);

int bl_client_acquire(struct bl_call *call, const struct bl_request *request, bizlock_grant *ret);
int bl_client_release(struct bl_call *call, uint32_t *ret_depth);
int bl_client_renew(struct bl_call *call, uint32_t lease_ms);
int bl_client_verify(struct bl_call *call);
int64_t bl_client_left_ms(struct bl_call *call);
int bl_client_break(struct bl_call *call, uint64_t seen_fence);
int bl_client_each(struct bizlock *b, const char *biz_type,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err);
int bl_client_look(struct bizlock *b, const struct bl_key *key,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err);
int bl_client_reap(struct bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result *ret,
                   struct bl_err *err);
void bl_client_interrupt(struct bizlock *b);

/* Any connection, for a moment. CONN, TIMEOUT, NOMEM, DB. */
int bl_client_borrow(struct bizlock *b, struct bl_conn **ret, struct bl_err *err);
void bl_client_give_back(struct bizlock *b, struct bl_conn *conn);
void bl_client_on_lost(struct bizlock *b, bl_lost_fn *fn, void *arg);
void bl_client_numbers(struct bizlock *b, bizlock_numbers *ret);

/* "held by 17@4121.9f..@db-7 (fence 12, depth 1), lease ends in 18.204 s". */
void bl_describe(const struct bl_row *row, char *ret, size_t size);

#endif
