/* The retry: a statement whose reply was lost, that met a conflict, or whose table is away for a
 * moment, is sent again. It ends at the call's io_deadline. */
#ifndef BL_CLIENT_CONN_RETRY_H
#define BL_CLIENT_CONN_RETRY_H

#include "client/state.h"

/* Runs with the mutex free. */
typedef int bl_statement(struct bl_session *s, void *arg, struct bl_err *err);

/* What became of a statement, over all its tries. All zero to begin with. */
struct bl_tried {
	bool repeated;      /* a try whose reply was lost may have done it already */
	bl_time sent;       /* before the try that was answered; 0: nothing was sent */
	bl_time fenced_at;  /* when the row was first found fenced; 0: it was not */
	bl_time missing_at; /* the same of its table: bl_may_be_swapped() */
	bool stalls;        /* what has it locked may be a commit that the cluster keeps waiting */
};

/* On any connection. UNKNOWN: sent, and never answered. CONN: never sent. CANCELLED: its wait
 * was interrupted. DB, NOMEM, TIMEOUT. *ret: its story, or NULL. */
int bl_run(struct bl_call *call, bl_statement *fn, void *arg, struct bl_tried *ret);

/* The same for what only reads: no answer is CONN. */
int bl_read(struct bl_call *call, bl_statement *fn, void *arg);

/* The row of the call's key. */
int bl_look(struct bl_call *call, struct bl_row *ret);

/* For what is no call on a key; with the mutex free. once: on any connection that can be had until
 * `end`. twice: for reads, and once more if that connection turns out to have been closed while it
 * was idle. CONN, TIMEOUT, NOMEM, DB. */
int bl_run_once(struct bizlock *b, bl_time end, bl_statement *fn, void *arg, struct bl_err *err);
int bl_read_twice(struct bizlock *b, bl_statement *fn, void *arg, struct bl_err *err);

/* ---- the parts, for calls that choose their connections ------------------------------- */

int bl_lend(struct bl_call *call, struct bl_conn **ret); /* any connection */

/* One try, on a connection that is lent to the call and stays so. */
int bl_try(struct bl_call *call, struct bl_conn *conn, bl_statement *fn, void *arg,
           struct bl_tried *tried);

/* After a try that failed: pauses and answers true if another one may do better. BUSY means that
 * the row is locked, and is given a moment, because a statement of bizlock's own may have it. */
bool bl_try_again(struct bl_call *call, struct bl_tried *tried, unsigned attempt);

/* May another try of what failed so do better? */
bool bl_may_heal(const struct bl_err *err);

/* Is the table missing, but not for long? *since: when it was first found so; 0 before that. */
bool bl_may_be_swapped(const struct bl_err *err, bl_time *since);

/* How the call answers in the end, when the last try has answered rc. */
int bl_tried_rc(struct bl_call *call, const struct bl_tried *tried, int rc);

/* Counts a statement that failed with err and will be sent again; but not one that was never
 * sent, for want of a connection: nothing is repeated then. */
void bl_count_retry(struct bl_numbers *n, const struct bl_err *err);

#endif
