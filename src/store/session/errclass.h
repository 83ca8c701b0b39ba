/* What a native error number means to bizlock. */
#ifndef BL_STORE_SESSION_ERRCLASS_H
#define BL_STORE_SESSION_ERRCLASS_H

#include <stdbool.h>

#include "base/err.h"

enum bl_class {
	BL_CLASS_OTHER,  /* the statement is refused: tell the caller */
	BL_CLASS_GONE,   /* the connection is of no use any more; a statement may have run */
	BL_CLASS_DOUBT,  /* the server lost its cluster during a commit: the server counts as not
	                    there, and the statement may have run */
	BL_CLASS_KILLED, /* this connection was killed; nothing has run, except perhaps the first
	                    parts of a compound. The same holds for AWAY */
	BL_CLASS_AWAY,   /* refused by a server that is leaving, not ready or read-only: it
	                    counts as not there, and nothing has run */
	BL_CLASS_RETRY,  /* nothing happened, and the same again may succeed */
	BL_CLASS_NULL, /* 1048, a NULL where none may be: a condition of the statement did not hold,
	                  and it has done nothing */
	BL_CLASS_MISSING,   /* no such table or database */
	BL_CLASS_TOO_LARGE, /* nothing was sent, for the server takes no packet that large */
	BL_CLASS_STOPPED    /* the statement was ended from outside, or by its time limit */
};

enum bl_class bl_classify(unsigned native);

/* The connection is of no use any more. */
bool bl_class_ends_connection(enum bl_class class);

/* Was a failed statement killed, or rolled back in favour of another one? It has done nothing, and
 * its error tells nothing else. */
bool bl_was_stopped(const struct bl_err *err);

/* Did the statement wait for a row, or for a table, that somebody else has locked? */
bool bl_waited_in_vain(const struct bl_err *err);

/* The errors of BL_STMT_TAKE_BELL and BL_STMT_TAKE if a row is there: its lease lasts, or is
 * over. */
bool bl_told_held(const struct bl_err *err);
bool bl_told_over(const struct bl_err *err);

/* The servers have one error number for a locked row and for a locked table. This number,
 * ER_CANT_UPDATE_WITH_READLOCK, stands for a table, as bl_lock_ask_table() finds out. */
#define BL_TABLE_LOCKED 1223
bool bl_table_locked(const struct bl_err *err);

/* Says that another session has locked the table, or rows of it: the holder of the lock is not to
 * blame. Returns the code. */
int bl_err_locked(struct bl_err *err, int code, const char *table, bool whole);

/* True for errors that no statement after the COMMIT of a compound gives: a condition of a batch
 * that does not hold (batch_text.c), a row that is not new, a deadlock. */
bool bl_before_commit(const struct bl_err *err);

/* Is the statement's table missing, or not granted to this user? */
bool bl_no_table(const struct bl_err *err);

/* After a dial failed: has the server, or this user, no connection left? Will the server probably
 * be back without help? */
bool bl_server_full(const struct bl_err *err);
bool bl_server_away(const struct bl_err *err);
bool bl_password_refused(const struct bl_err *err);

/* May the statement have run, although it failed? */
bool bl_may_have_run(const struct bl_err *err);

/* Sets err to CONN (a class that ends the connection) or DB, with the server's words. Returns the
 * code. err->native is the normalized number: 1180 may mean a deadlock. */
int bl_err_native(struct bl_err *err, unsigned native, const char *text);

#endif
