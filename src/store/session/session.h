/* One connection of bizlock's own: its settings, its prepared statements and
 * the buffers they read from. Used by one thread at a time. */
#ifndef BL_STORE_SESSION_SESSION_H
#define BL_STORE_SESSION_SESSION_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/socket.h"
#include "core/hosts.h"
#include "core/owner.h"
#include "store/session/connector.h"
#include "store/session/rows.h"
#include "store/sql/sql.h"

#define BL_BELL_MAX 64 /* bytes of a GET_LOCK name */

/* Which server it is, in SQL. */
#define BL_IDENTITY "CONCAT(@@hostname, ':', @@port, ':', @@server_id)"
#define BL_IDENTITY_MAX 319

/* The table counts characters, of which each may have four bytes. What bizlock wrote is
 * shorter, but others may write there as well. */
#define BL_STORED_ID_MAX (4 * BIZLOCK_ID_MAX)
#define BL_STORED_TYPE_MAX (4 * BIZLOCK_TYPE_MAX)

/* The parameters of statements. A statement is bound to this struct once, when it is prepared; to
 * run it again is to fill the struct, and to send. */
struct bl_params {
	char id[BL_STORED_ID_MAX + 1], type[BL_STORED_TYPE_MAX + 1];
	char bell[BL_BELL_MAX + 1];
	char owner[BL_OWNER_MAX + 1], giver[BL_OWNER_MAX + 1], note[BIZLOCK_NOTE_MAX + 1];
	unsigned long id_len, type_len, bell_len, owner_len, giver_len, note_len;
	int64_t lease_us;
	uint64_t fence, depth, slot;
};

/* A GET_LOCK that one connection alone has: by it another connection finds and ends the right one
 * (kill.h). */
struct bl_mark {
	char name[BL_BELL_MAX + 1]; /* "": there is none */
	uint64_t id;                /* the server's, of the connection */
};

struct bl_session {
	MYSQL *mysql;
	const struct bl_host
	        *host; /* one of several: see store/hosts/failover.h. NULL: the only one */
	const struct bl_sql *sql;
	MYSQL_STMT *stmts[BL_STMT_COUNT]; /* NULL: not prepared yet */
	struct bl_params params;
	struct bl_buf text;
	bool in_group;           /* its server is one of a group, */
	bool blind;              /* and its user may not see whether it still is */
	char uuid[37];           /* of a server in a group */
	bool wrote;              /* in a group: a change that is still to be vouched for */
	bool alone;              /* its server has committed without the group */
	unsigned warnings;       /* of the last answer to a text */
	bool ran[BL_STMT_COUNT]; /* these statements went before: they are worth preparing */
	bool unprepared;         /* the server prepares no more statements: new ones go as text */
	bool gone;               /* of no use any more: close it */
	uint64_t packet_max;     /* bytes of a statement that the server takes; 0: not known */
	bl_time idle_max;        /* the server ends the connection after this time without a
	                            statement */
	bl_time answer_by;       /* if the answer to a text comes later, the session is given up */
	uint32_t io_ms;          /* the time for each read */
	bl_time asked_at;        /* when the connector's last call began, */
	_Atomic bl_time due;     /* and until when a call under way has time; see
	                            bl_session_begin() */
	struct bl_guard *guard;  /* NULL: somebody else looks at `due` */
	bool left;               /* gone because we gave it up, not because it was lost */
	bool away;               /* gone because its server refuses to serve now */
	bool silent;             /* gone because an answer did not come in time */
	bool looked;             /* bl_session_ended() looked, just before this statement */
	bool woke;               /* the doorbell that was given back last has woken watchers */
	unsigned batches_in_two; /* this many batches more go in two packets: see batch.c */
	struct bl_mark mark;
	char server[BL_IDENTITY_MAX + 1]; /* by BL_IDENTITY; "": not known */
};

/* Connects to this host and fixes the settings. One of several has to take writes. ret must stay
 * where it is from its first prepared statement on, for which ret->sql has to be set. CONN, NOMEM;
 * DB when the settings are refused, as they are, with in_group, by a server that knows no groups.
 * io_ms: how long each read may take. store/hosts/failover.h chooses the host. */
int bl_session_open(struct bl_session *ret, const struct bl_config *config,
                    const struct bl_host *host, bool in_group, uint32_t io_ms, struct bl_err *err);

/* The same for a look at a server that may be of no use: no default database, a replica will do,
 * and settings that are refused stay as they are. */
int bl_session_reach(struct bl_session *ret, const struct bl_config *config,
                     const struct bl_host *host, struct bl_err *err);

/* Takes an all-zero session. */
void bl_session_close(struct bl_session *s);

/* The same in a forked child: not a byte goes to the parent's connection. */
void bl_session_forget(struct bl_session *s);

/* The connectors limit the time of one read. A server that goes on to say a little, in time for
 * each read, could keep a call busy for ever. So each call stands between a begin and
 * bl_session_end(), and another thread ends the connection when the call is late. A call has twice
 * the time of one read: once to send the statement, once for the answer to begin; the rest of the
 * answer comes at once. Rows have a time of their own. */
#define BL_CALL_PATIENCE 2
void bl_session_begin(struct bl_session *s);
void bl_session_begin_rows(struct bl_session *s, bl_time until);
void bl_session_end(struct bl_session *s);

/* For the other thread. Ends the connection if its call is late. Returns when to look again: a call
 * that begins later has time until then. */
bl_time bl_session_cut_late(const struct bl_session *s, struct bl_socket socket);

/* Starts a thread that looks after the session until it is closed, where nobody else does.
 * NOMEM. */
int bl_session_guard(struct bl_session *s, struct bl_err *err);
void bl_session_unguard(struct bl_session *s); /* takes a session without guard */

/* CONN: the server is read-only, or in a group and not an online member; DB: the server does not
 * say. */
int bl_session_takes_writes(struct bl_session *s, struct bl_err *err);

/* A member may lose its place in the group while a connection lies idle, and nothing ends the
 * connection. CONN, and the session is `gone`: the member has lost its place. */
#define BL_MEMBER_NS (100 * BL_NS_PER_MS)
int bl_session_recheck(struct bl_session *s, struct bl_err *err);

/* A member that its group leaves behind takes writes for a moment, and nobody else will ever see
 * them. So a change in a group is believed if the answer has a GTID of the group's, or, without a
 * GTID, if the member is seen online after the answer. CONN as if the answer had been lost, and the
 * session is `gone`: the change is not believed, or the answer's number of rows is impossible. */
int bl_session_note_rows(struct bl_session *s, uint64_t affected, struct bl_err *err);
int bl_session_vouch(struct bl_session *s, struct bl_err *err);

/* Has the server ended the connection while it lay idle? Then nothing is sent, and no answer can be
 * lost. Sets `gone`. */
bool bl_session_ended(struct bl_session *s);

/* Gives up a connection that may well work, but in a state nobody else can use. */
void bl_session_leave(struct bl_session *s);

/* Runs one or more statements as text and throws results away. *ret_affected
 * (or NULL): rows of the last one that is no query. */
int bl_session_run(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   struct bl_err *err);

/* The same; *ret_number: the first field of the first row of the last result
 * that had rows, 0 if none had. */
int bl_session_ask(struct bl_session *s, const char *sql, size_t len, uint64_t *ret_affected,
                   int64_t *ret_number, struct bl_err *err);

/* Runs one query as text; the caller frees the rows. columns: how many it must have; 0 if it is no
 * query. */
int bl_session_query(struct bl_session *s, const char *sql, unsigned columns, struct bl_rows **ret,
                     struct bl_err *err);

/* Reads one word by a query of one column: "" where there is no row, or NULL in it. */
int bl_session_ask_word(struct bl_session *s, const char *sql, char *ret, size_t size,
                        struct bl_err *err);

/* bl_session_run(), _ask() and _query() for s->text. These functions, and all below that send
 * s->text, answer NOMEM if there was no memory to make the text. */
int bl_session_run_text(struct bl_session *s, uint64_t *ret_affected, struct bl_err *err);
int bl_session_ask_text(struct bl_session *s, uint64_t *ret_affected, int64_t *ret_number,
                        struct bl_err *err);
int bl_session_query_text(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                          struct bl_err *err);

/* Runs two statements, of which only the first matters: *ret_affected is of the first, and an error
 * of the second only makes the session `gone`. */
int bl_session_run_first(struct bl_session *s, uint64_t *ret_affected, struct bl_err *err);

/* Sends s->text, and calls fn with each answer: the number of its statement, from 0, and its rows,
 * NULL if it has none. An error of the server's after the first `needed` answers only costs the
 * session. */
typedef void bl_answer_fn(void *arg, unsigned statement, struct bl_rows *rows);

int bl_session_each(struct bl_session *s, unsigned needed, bl_answer_fn *fn, void *arg,
                    struct bl_err *err);

/* The same for a text that has n answers, and not one for each statement. */
int bl_session_each_of(struct bl_session *s, unsigned n, unsigned needed, bl_answer_fn *fn,
                       void *arg, struct bl_err *err);

/* The two halves of bl_session_query(), for one text of any kind: sends it; and reads the answer to
 * a text of one statement. columns: 0 if it is no query. */
int bl_session_send(struct bl_session *s, const char *sql, size_t len, struct bl_err *err);
int bl_session_answer(struct bl_session *s, unsigned columns, struct bl_rows **ret,
                      struct bl_err *err);

/* bl_session_send() in two parts, for a caller that waits between them: one sends s->text, the
 * other reads how the answer begins. */
int bl_session_post(struct bl_session *s, struct bl_err *err);
int bl_session_await(struct bl_session *s, struct bl_err *err);

/* Waits between the two. ANSWER: an answer, or the end of the connection, of which reading will
 * tell. */
enum bl_ready { BL_READY_ANSWER, BL_READY_WAKE, BL_READY_LATE };
enum bl_ready bl_session_poll(const struct bl_session *s, int wake_fd,
                              bl_time until); /* -1: none */

/* If a server announces more columns than were asked for, they would be written where there is no
 * room. OK if `found` is `asked`; else DB, and the session is given up. */
int bl_session_check(struct bl_session *s, const char *what, unsigned long found,
                     unsigned long asked, struct bl_err *err);

/* The same for an answer that cannot be right: DB, and the session is given up. */
int bl_session_refuse(struct bl_session *s, struct bl_err *err, const char *why);

/* Before a statement is sent: CONN, as if it could not be sent, when the server has ended the
 * connection or has spoken without being asked. Connector/C would first read all that it said,
 * which may have no end. */
int bl_session_ready(struct bl_session *s, struct bl_err *err);

/* Was the answer that was read the last one, as it must be? */
int bl_session_last(struct bl_session *s, struct bl_err *err);

/* Is the server willing to run this? It is prepared, and no more. CONN, DB, NOMEM. */
int bl_session_prepare(struct bl_session *s, const char *sql, struct bl_err *err);

/* As if the answer had been lost, and with it the connection: what was sent may have run, or not.
 * Returns CONN. */
int bl_session_lost(struct bl_session *s, struct bl_err *err, const char *why);

/* Sets err, and `gone` if the error is of that kind: from the connection's last error, or from
 * that of a statement. */
int bl_session_error(struct bl_session *s, struct bl_err *err);
int bl_session_failed(struct bl_session *s, unsigned native, const char *text, struct bl_err *err);

void bl_params_key(struct bl_params *p, const struct bl_key *key);
void bl_params_stored(struct bl_params *p, const char *id, size_t id_len, const char *type,
                      size_t type_len); /* any bytes */
void bl_params_bell(struct bl_params *p, const char *bell);
void bl_params_owner(struct bl_params *p, const char *owner);
void bl_params_giver(struct bl_params *p, const char *giver);
void bl_params_note(struct bl_params *p, const char *note); /* NULL: none */

struct bl_done {
	uint64_t affected, insert_id;
};

/* Runs a prepared statement that returns no rows; as text, where the server has no room
 * for another one. */
int bl_session_exec(struct bl_session *s, enum bl_stmt which, struct bl_done *ret,
                    struct bl_err *err);

/* Runs a statement that returns rows, as text: stmt.c says why. As bl_session_query(). */
int bl_session_select(struct bl_session *s, enum bl_stmt stmt, unsigned columns,
                      struct bl_rows **ret, struct bl_err *err);

#endif
