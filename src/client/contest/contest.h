/* A first acquisition: of one key, or of a set, all or none; where one key is held, it waits for
 * that one. */
#ifndef BL_CLIENT_CONTEST_CONTEST_H
#define BL_CLIENT_CONTEST_CONTEST_H

#include "client/contest/member.h"
#include "core/wait.h"
#include "store/shared/sharers.h"

/* Beside the error numbers: nothing decided yet; and: wait first. */
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
	struct bl_call *call; /* on the first key: for what concerns them all */
	const struct bl_request *request;
	bool in_queue;    /* a single key is waited for in its wait queue */
	struct bl_op *op; /* a request's: no thread waits for it, so what would wait is
	                          BL_PARKED. NULL: a thread's */

	/* Whose rows are to be taken, n of them, in the order of the primary key, and their goals.
	 * Their holds are ACQUIRING and busy; that of a single key knows its `bell` at any time. */
	struct bl_member **members;
	struct bl_goal **goals;
	size_t n;

	/* A single key's wait: its place, and what a request waits for. */
	enum bl_contest_phase phase;
	struct bl_queue *queue; /* NULL: not in one */
	struct bl_place place;
	struct bl_watch_wait *watched; /* by a watcher, or NULL */
	struct bl_conn *conn;          /* on which it sleeps at a doorbell, or NULL */
	bl_time parked_until;          /* BL_PARKED: until then, or until it is woken */
	bool seen;                     /* a batch has looked for it, */
	bool alone;                    /* or had no use for it */
	bool sleeps;                   /* once it is parked: at the doorbell */
	bool abroad;  /* it was free at the server, whatever this client's own holds say */
	bool crowded; /* no connection could be had to sleep on: it is to be watched */

	struct bl_wait wait;
	const struct bl_member *blocker; /* whose key is in the way, */
	struct bl_row *row;              /* and its row, as seen last */
	bl_time missing_at;              /* when the table was first found missing, 0: it was not */
	bl_time sent;   /* OK: when the statement that took the rows was about to be sent */
	uint64_t floor; /* the largest fence that this client had had by then, where fences have to
	                   be larger; else 0 */
	bool in_vain; /* a statement waited for a lock of the server's, of a row or of its table; */
	bool locked;  /* the table is locked: only a read gets through, if anything does */
	bool unsure;  /* rows of ours may be there, although we do not hold them */
	bool handed_over; /* OK: by the hold's last owner, and it is HELD already */

	/* Among those that share the lock (share.h): */
	bool among;
	struct bl_shared_seen others; /* as seen last */
	uint32_t slot;                /* of one that shares without a limit: it was taken; or 0 */
	bool stays;                   /* slot 0 is ours, and the others have yet to leave: */
	bool gone;                    /* our row was there, and has been deleted */
	bool has_place;               /* our row has the short lease of a waiter */
	bool overslept;               /* nobody woke it, and no lease was to end */
	bool past;                    /* it has gone past the doorbell, and so may clear rows */
	bool took_over;               /* rows that were never given back were cleared for it */
	unsigned pauses, failures;
};

/* A line about the key that is in its way. */
#define BL_TRACE_WAIT(c, ...)                                                                      \
	BL_TRACE(&(c)->client->trace, &(c)->blocker->call.key, &(c)->call->owner, __VA_ARGS__)

/* A request looks, or passes the queue, together with others. */
bool bl_contest_wants_batch(const struct bl_contest *c);

/* OK: the rows are theirs, by c->goals and c->sent. BUSY, TIMEOUT, CANCELLED, UNKNOWN, CONN,
 * DB, SCHEMA (no fences, or they have gone back), NOMEM: nothing is held. The mutex is let go of
 * while it sends, or a thread sleeps; but not between the moment when a single key was seen to be
 * OK and the return.
 *
 * BL_PARKED: until c->parked_until, or until its place is woken. BL_AGAIN, of a request: it wants
 * to go for the row, or look, together with others. bl_attempt_job() is to be run in a batch, and
 * what bl_attempt_answer() says of that goes to bl_contest_go_on(). */
int bl_contest_step(struct bl_contest *c);
int bl_contest_go_on(struct bl_contest *c, int rc);

/* Once it has ended with rc. */
void bl_contest_leave(struct bl_contest *c, int rc);
void bl_contest_forget(struct bl_contest *c); /* without a statement */

#endif
