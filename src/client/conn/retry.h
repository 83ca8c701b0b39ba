/* Retries: a statement is sent again if its reply was lost, it met a conflict, or its table is
 * missing for a moment. They end at the call's io_deadline. */
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
	bl_time missing_at; /* when the table was first found missing: bl_may_be_swapped() */
	bool stalls;        /* the row may be locked by a commit that the cluster keeps waiting */
};

/* Runs fn on any connection, with retries. UNKNOWN: sent, and never answered. CONN: never sent.
 * CANCELLED: the call's wait was interrupted. DB, NOMEM, TIMEOUT. ret: NULL, or gets what became of
 * the tries. */
int bl_run(struct bl_call *call, bl_statement *fn, void *arg, struct bl_tried *ret);

/* The same for statements that only read: without an answer, CONN. */
int bl_read(struct bl_call *call, bl_statement *fn, void *arg);

/* The row of the call's key. */
int bl_look(struct bl_call *call, struct bl_row *ret);

/* For statements that belong to no call on a key; with the mutex free. once: on any connection that
 * is free by `end`. twice: for what may run twice, such as a read; once more if the connection was
 * closed while it was idle. CONN, TIMEOUT, NOMEM, DB. */
int bl_run_once(struct bizlock *b, bl_time end, bl_statement *fn, void *arg, struct bl_err *err);
int bl_run_twice(struct bizlock *b, bl_statement *fn, void *arg, struct bl_err *err);

/* ---- the parts, for calls that choose their connections ------------------------------- */

int bl_lend(struct bl_call *call, struct bl_conn **ret); /* any connection */

/* One try, on a connection that is lent to the call and stays so. */
int bl_try(struct bl_call *call, struct bl_conn *conn, bl_statement *fn, void *arg,
           struct bl_tried *tried);

/* After a try that failed: pauses and answers true if another try may do better. After BUSY, tries
 * go on for a moment only: the row is locked, maybe by a statement of bizlock's own. */
bool bl_try_again(struct bl_call *call, struct bl_tried *tried, unsigned attempt);

/* May another try do better after this error? */
bool bl_may_heal(const struct bl_err *err);

/* Is the table missing, but for less than BL_SWAP_NS? *since: when it was first found missing; 0
 * before. */
bool bl_may_be_swapped(const struct bl_err *err, bl_time *since);

/* The answer of the call, when the last try has answered rc. */
int bl_tried_rc(struct bl_call *call, const struct bl_tried *tried, int rc);

/* Counts a retry after err; but not if the statement was never sent, for want of a connection. */
void bl_count_retry(struct bl_numbers *n, const struct bl_err *err);

#endif
