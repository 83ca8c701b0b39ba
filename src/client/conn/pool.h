/* A client's connections: opened when needed, each lent to one thread at a time. There are at
 * most max_connections, and threads get them in order of arrival. Guarded by the client's
 * mutex, which is let go of while connecting, disconnecting, and waiting for a turn. */
#ifndef BL_CLIENT_CONN_POOL_H
#define BL_CLIENT_CONN_POOL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/worker.h"
#include "client/conn/jobs.h"
#include "core/numbers.h"
#include "store/hosts/failover.h"

/* Each doorbell a connection holds makes its statements a little slower on
 * MariaDB: 1.4 times with 1,000. */
#define BL_BELLS_MAX 256

/* A lost connection: its statements may still arrive, until it is ended at its server. */
struct bl_lost_conn {
	struct bl_mark mark;        /* "": none was lost */
	const struct bl_host *host; /* host and server as in its session */
	char server[BL_IDENTITY_MAX + 1];
};

struct bl_conn {
	struct bl_session session;
	uint64_t id;               /* never used twice; 0: not connected */
	unsigned bells;            /* doorbells that it holds */
	struct bl_socket socket;   /* of the connection, to be cut off */
	struct bl_lost_conn *lost; /* lost in this place before, one at each host */
	bool used;                 /* no lost connections have to be ended first */
	bool lent;
	bool at_bell;           /* lent to a thread that waits at a doorbell */
	bool open;              /* lent for a moment: jobs may stand in line */
	bool jobs_were_first;   /* when it was given back last: jobs and threads take turns */
	struct bl_list jobs;    /* the line at it */
	unsigned expected;      /* threads of its last batch that may come back to its line */
	bl_time expected_until; /* by then: see combine.c */
	struct bl_gathering *gathering; /* a leader waits for them; NULL: none */
	unsigned bells_due; /* doorbells that the statement under way may add to `bells` */
	bl_time connected_at, lent_at;
	bl_time took;       /* how long it was lent the last time; idle since then */
	bool was_lost;      /* the connection in this place before was lost, not closed by us */
	atomic_int wake_fd; /* readable: an interrupt. -1 until the first connection; then
	                       open as long as the pool, for a signal handler may write */
};

/* A thread that a signal handler cannot wake looks this often for interrupts, which may take
 * 50 ms. */
#define BL_WAKE_NS (25 * BL_NS_PER_MS)

struct bl_pool_waiter;

struct bl_pool {
	pthread_mutex_t *mu;
	struct bl_failover *failover;
	const struct bl_sql *sql;
	struct bl_numbers *numbers;
	struct bl_trace *trace;
	struct bl_worker *janitor; /* looks after idle connections, and sends heartbeats */
	struct bl_worker *watch;   /* cuts off statements that do not end */
	bl_time answer;            /* how long a server may take for an answer */
	struct bl_conn *conns;
	struct bl_lost_conn *lost; /* the lost connections of all places */
	unsigned size;
	unsigned open;        /* lent, and open for jobs */
	unsigned at_bells;    /* lent to threads that wait at a doorbell, which can last */
	bl_time crowd_until;  /* until then CROWD applies: see combine.c */
	unsigned watchers;    /* connections lent to the watch thread (watch/watch.c) */
	bool keep;            /* the watch thread wants one more, and found none idle */
	struct bl_conn *kept; /* kept for the watch thread, and lent */
	bool reserve;       /* the renewer has holds to renew, and no connection of its own: so one
	                       connection of the pool stays awake, and is kept alive */
	bl_time bells_from; /* when a wait may be promoted again to a doorbell */
	bl_time beat_at;    /* of the last heartbeat */
	struct bl_err down; /* why no connection could be made, */
	bl_time down_until; /* and until when requests make none */
	uint64_t last_id;
	struct bl_pool_waiter *first, **last;
};

/* NOMEM. */
int bl_pool_init(struct bl_pool *p, pthread_mutex_t *mu, struct bl_failover *failover,
                 const struct bl_sql *sql, struct bl_numbers *numbers, struct bl_err *err);

/* forked: in a child, where the connections are the parent's. Takes an all-zero
 * pool. Nothing may be lent. */
void bl_pool_free(struct bl_pool *p, bool forked);

/* All of these with the mutex held. */

/* Gives the pool, which has no connection yet, its first one; *s is all zero afterwards. */
void bl_pool_adopt(struct bl_pool *p, struct bl_session *s);

/* How long a request waits for its turn, before it tries again: other calls of the client may use
 * all connections, and requests can be cancelled. */
#define BL_TURN_NS (100 * BL_NS_PER_MS)

/* How long a thread waits for its turn. */
struct bl_patience {
	bl_time end;
	const atomic_uint *wakes; /* NULL: interrupts do not end it */
	const atomic_uint *seen;  /* of *wakes: another value is an interrupt */
	unsigned bells;           /* doorbells that the connection is to take; 0 is as 1 */
	bool open;                /* others may put jobs into its line */
	bool comes_again; /* after a dial that took long and failed, makes none for as long as that
	                     took, and answers CONN: a host that is silent must not keep thousands
	                     of requests waiting, one after the other */
	bool first;       /* before all other waiters, and only a connection that is made already */
};

/* next_look: when to look again whether the patience is over. over: is it? OK: no. CANCELLED,
 * TIMEOUT. */
bl_time bl_pool_next_look(const struct bl_patience *patience);
int bl_pool_patience_over(const struct bl_pool *p, const struct bl_patience *patience,
                          struct bl_err *err);

/* Any connection that can take patience.bells more doorbells, or else any at all.
 * TIMEOUT: none became free; CANCELLED; CONN, NOMEM, DB: connecting failed. */
int bl_pool_take(struct bl_pool *p, struct bl_patience patience, struct bl_conn **ret,
                 struct bl_err *err);

/* The connection with this id: only there can its doorbells be released. *ret NULL: it is gone, and
 * its doorbells with it. TIMEOUT, CANCELLED; CONN, NOMEM: lost connections could not be ended
 * first. */
int bl_pool_take_id(struct bl_pool *p, uint64_t id, struct bl_patience patience,
                    struct bl_conn **ret, struct bl_err *err);

/* For the renewer: a connection that is made already, before all other waiters. TIMEOUT: none was
 * idle by `until`; NOMEM. */
int bl_pool_borrow(struct bl_pool *p, bl_time until, struct bl_conn **ret, struct bl_err *err);

struct bl_conn *bl_pool_find(const struct bl_pool *p, uint64_t id);

/* Its session is connected, and it is a connection of the pool from here on. */
void bl_conn_begin(struct bl_pool *p, struct bl_conn *conn);

/* From this time on, a connection that is still lent counts as stalled. */
bl_time bl_conn_stalls(const struct bl_conn *conn);

/* How long it may be idle, and from when on the server may be about to end it. */
bl_time bl_conn_idle_max(const struct bl_conn *conn);
bl_time bl_conn_stale_at(const struct bl_conn *conn);

/* When a connection is given back: notes whether its host answered, gave no answer in time, or
 * takes no writes. */
void bl_conn_note_host(const struct bl_pool *p, const struct bl_conn *conn);

/* Leaves an idle connection that is likely to be useless: to find that out costs less now than when
 * a statement is sent. */
void bl_conn_leave_if_useless(const struct bl_pool *p, struct bl_conn *conn);

/* Is another connection idle, or in use without stalling? */
bool bl_pool_others_move(const struct bl_pool *p, const struct bl_conn *conn);

/* A connection without doorbells, to sleep at a doorbell. *ret NULL: there is none now, so the
 * caller polls. One connection always remains for other calls, or nobody could release the locks
 * that sleepers wait for. hot: see yields.h. */
int bl_pool_take_for_bell(struct bl_pool *p, bool hot, struct bl_conn **ret, struct bl_err *err);

/* The same on a connection that is lent already. If it is the last one awake, it still counts as
 * awake: renewals wait for it. */
void bl_pool_bell_begins(struct bl_pool *p, struct bl_conn *c);

void bl_pool_bell_over(struct bl_pool *p); /* the wait is over; the connection still lent */
bool bl_pool_has_room_at_bells(const struct bl_pool *p, bool hot);
/* And a connection is idle, or can be made: not shortly after none could be had. */
bool bl_pool_can_sleep_at_bell(struct bl_pool *p, bool hot);

/* The same for the watch thread, which may have a quarter of the connections: none of fewer than 4.
 * *ret NULL: there is none now. The next one is kept for the watch thread, which has to ask
 * again. */
int bl_pool_take_for_watch(struct bl_pool *p, struct bl_conn **ret, struct bl_err *err);
void bl_pool_keep_none(struct bl_pool *p); /* the watch thread needs no more */
void bl_pool_watch_over(struct bl_pool *p);
unsigned bl_pool_watchers_max(const struct bl_pool *p);

/* Gives the connection back, or closes it if its session is gone. The jobs in its line are next, in
 * turn with threads that wait for it. */
void bl_pool_put(struct bl_pool *p, struct bl_conn *conn);

/* Sends a statement that does nothing, if conn is idle. NULL: on any connection, most often a new
 * one to the first host that is there. If the connection turns out to be gone, its doorbells are
 * gone, too, and the pool has it killed at the server. */
void bl_pool_ask(struct bl_pool *p, struct bl_conn *conn);

/* Cuts off every connection that is lent: a thread that waits for an answer there gets an error. */
void bl_pool_cut(struct bl_pool *p);

/* Cuts off connections whose statement takes too long. Returns when to look again. */
bl_time bl_pool_cut_late(struct bl_pool *p);

/* Makes its wake_fd unreadable. Look for interrupts after this, not before. */
void bl_conn_quiet(struct bl_conn *conn);

/* Ends the wait at a doorbell on this connection. Async-signal-safe; needs no mutex. */
void bl_conn_wake(struct bl_conn *conn);

/* The same for all of them. */
void bl_pool_wake(struct bl_pool *p);

#endif
