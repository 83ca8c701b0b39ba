/* A contest: the first acquisition of one key, or of a set, all or none. While one key of a set is
 * held, the set waits for that key. */
#ifndef BL_CLIENT_CONTEST_CONTEST_H
#define BL_CLIENT_CONTEST_CONTEST_H

#include "client/contest/member.h"
#include "core/wait.h"
#include "store/shared/sharers.h"

/* Beside the error numbers. BL_AGAIN: nothing is decided yet. BL_PARKED: wait first. */
enum { BL_AGAIN = -1, BL_PARKED = -2 };

enum bl_contest_phase {
	BL_CONTEST_BEGINS, /* joins the wait queue, */
	BL_CONTEST_PASSES, /* and passes those who are before it, if it may */
	BL_CONTEST_LINE,
	BL_CONTEST_FIRST,
	BL_CONTEST_TURNS
};

struct bl_contest {
	struct bizlock *client;
	struct bl_call *call; /* on the first key; used for what concerns all keys */
	const struct bl_request *request;
	bool in_queue;    /* a single key is waited for in its wait queue, from the beginning on */
	struct bl_op *op; /* the request that contends: no thread waits for it, so it is BL_PARKED
	                     where a thread would wait. NULL: a thread contends */

	/* The n keys whose rows are to be taken, in the order of the primary key, and their goals.
	 * Their holds are ACQUIRING and busy; the hold of a single key has its `bell` right at any
	 * time. */
	struct bl_member **members;
	struct bl_goal **goals;
	size_t n;

	/* Its wait: its place, and what a request waits for. */
	enum bl_contest_phase phase;
	struct bl_queue *queue; /* of a single key, or of the blocker of a request for several.
	                           NULL: not in one */
	struct bl_place place;
	struct bl_watch_wait *watched; /* by a watcher, or NULL */
	struct bl_conn *conn;          /* on which it sleeps, or NULL */
	bl_time parked_until;          /* BL_PARKED: until then, or until it is woken */
	bool seen;                     /* `row` is fresh: if it is held, a turn needs no look */
	bool alone;                    /* it did not suit a batch, and goes without */
	bool sleeps;                   /* once it is parked, it sleeps at the doorbell */
	bool abroad;  /* a watcher has seen the key free at the server: this client's own holds do
	                 not count */
	bool crowded; /* no connection or thread was left to sleep at the doorbell: it is to be
	                 watched */

	struct bl_wait wait;
	const struct bl_member *blocker; /* the member whose key is in the way */
	struct bl_row *row;              /* the row of that key, as last seen */
	bl_time missing_at;              /* when the table was first found missing, 0: it was not */
	bl_time sent;     /* OK: when the statement that took the rows was about to be sent */
	uint64_t floor;   /* the largest fence that this client had by then: new fences have to be
	                     larger. 0 in a cluster */
	bool late;        /* the last answer that a row is ours came after the lease */
	bool in_vain;     /* a statement waited in vain for a lock of the server's, */
	bool guessed;     /* or may do so, because another request's did */
	bool locked;      /* the table is locked: only a read gets through, if anything does */
	bool unsure;      /* rows of ours may be there, although we do not hold them */
	bool handed_over; /* OK: by the lock's last owner, and the hold is HELD already */

	/* For a contest among sharers (share.h): */
	bool among;
	struct bl_shared_seen others; /* as seen last */
	uint32_t slot;                /* of a sharer without a limit, from bl_slots_take(); or 0 */
	bool stays;                   /* slot 0 is ours, and the sharers have yet to leave */
	bool gone;                    /* our row was there, and has been deleted */
	bool has_place;               /* our row has the short lease of a waiter */
	bool overslept; /* it slept to the end: nobody woke it, and no lease was to end */
	bool past;      /* it has gone past the doorbell, and so may clear rows */
	bool took_over; /* rows that were never given back were cleared for it */
	unsigned pauses, failures;
	uint64_t ended; /* the fence of a hold whose lease it has ended (crashed.h), or 0 */
};

/* A trace line about the key in the way. */
#define BL_TRACE_WAIT(c, ...)                                                                      \
	BL_TRACE(&(c)->client->trace, &(c)->blocker->call.key, &(c)->call->owner, __VA_ARGS__)

/* Is it a request that wants to look, or to pass the queue, in a batch? */
bool bl_contest_wants_batch(const struct bl_contest *c);

/* OK: the rows are taken: see c->goals and c->sent. BUSY, TIMEOUT, CANCELLED, UNKNOWN, CONN, DB,
 * SCHEMA (no fences, or they have gone back), NOMEM: nothing is held. The mutex is let go of while
 * it sends, or a thread sleeps; but not between the win of a single key and the return.
 *
 * BL_PARKED: wait until c->parked_until, or until the place is woken. BL_AGAIN, only of a request:
 * it wants to try for the row, or to look, in a batch. Run bl_attempt_job() in a batch, and pass
 * the answer of bl_attempt_answer() to bl_contest_go_on(). */
int bl_contest_step(struct bl_contest *c);
int bl_contest_go_on(struct bl_contest *c, int rc);

/* Ends a contest that had the result rc. */
void bl_contest_leave(struct bl_contest *c, int rc);
void bl_contest_forget(struct bl_contest *c); /* without a statement */

#endif
