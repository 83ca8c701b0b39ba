/* Which of several hosts to connect to. Hosts are tried in the order of the option `host`, but
 * hosts that failed lately come last. A host that has not answered after a moment does not keep the
 * next one waiting: both are dialed side by side, and the first that is of use is taken ("happy
 * eyeballs", RFC 8305). */
#ifndef BL_STORE_HOSTS_FAILOVER_H
#define BL_STORE_HOSTS_FAILOVER_H

#include <pthread.h>

#include "core/standing.h"
#include "core/trace.h"
#include "store/session/session.h"

struct bl_target {
	struct bl_host host;
	struct bl_standing standing;
	bl_time heard_at; /* when it gave its last answer that was noted; 0: none was */
};

struct bl_dial;
struct bl_old_password;

/* Reads the password again from its source, and gives it to bl_failover_password(). */
typedef void bl_reread_fn(void *arg);

/* It has a mutex of its own, which is held for a moment. No other mutex is taken meanwhile. */
struct bl_failover {
	struct bl_config config; /* a copy: dials may outlive the opener. Its password may change; a
	                            dial has the password that was in force when the dial began */
	unsigned passwords;      /* how often the password has changed */
	struct bl_old_password *old_passwords; /* dials may use them still */
	bl_reread_fn *reread; /* asked where a server refuses the password, or NULL */
	void *reread_arg;
	struct bl_trace *trace; /* NULL: connections are not traced */
	uint32_t io_ms;         /* the time for each read: that of one answer */
	bool any;      /* any server that can be looked at is of use: see bl_session_reach() */
	bool in_group; /* bizlock_open() has found a group; does not change any more */
	struct bl_target *targets; /* in the order of the option */
	unsigned n;
	char server[BL_IDENTITY_MAX + 1]; /* the server to which the only host leads; "": any will
	                                     do */
	pthread_mutex_t mu;
	pthread_cond_t ended;   /* a dial has ended */
	unsigned dials;         /* under way, each in a thread of its own (store/hosts/race.h) */
	bl_time dialed_at;      /* when the last one began */
	bool stopped;           /* nobody waits for a dial any more */
	bool left;              /* the owner is gone: the last dial frees all this */
	struct bl_dial *strays; /* dials that nobody waits for */
	bool any_ended;         /* a dial's thread has ended, and is to be joined: */
	pthread_t ended_last;
};

/* Of config's hosts. NOMEM. */
int bl_failover_new(struct bl_failover **ret, const struct bl_config *config, struct bl_err *err);

/* Waits for dials that are under way, but not longer than connecting may take, and not in a forked
 * child. A dial that is still under way then goes on until its server lets it end. Takes NULL. */
void bl_failover_free(struct bl_failover *f, bool forked);

/* From now on nobody waits for a dial. */
void bl_failover_stop(struct bl_failover *f);

/* The only host leads to this server, until a failover; "": to any of several that share their
 * tables. Connections to another server are checked (store/hosts/one_server.h). */
void bl_failover_leads_to(struct bl_failover *f, const char *server);

/* *ret: the server to which connections lead now. "": any. */
void bl_failover_server(struct bl_failover *f, char ret[BL_IDENTITY_MAX + 1]);

/* Connects to the first host that is of use, within connect_timeout_ms, and not after `until`. sql
 * may be NULL for a session that runs no prepared statement. CONN, NOMEM; DB when the settings are
 * refused. */
int bl_failover_connect(struct bl_failover *f, const struct bl_sql *sql, bl_time until,
                        struct bl_session *ret, struct bl_err *err);

/* The same with a failover of its own, for a caller that connects once, and whose statements may
 * take long: each read has io_timeout_ms, however many hosts there are. The session is guarded, and
 * must not move. any: as in struct bl_failover. */
int bl_failover_connect_once(const struct bl_config *config, bool any, struct bl_session *ret,
                             struct bl_err *err);

/* Where the session leads: its host, or the only host. */
const struct bl_host *bl_failover_host(const struct bl_failover *f, const struct bl_session *s);

/* The options for a connection that is made now. Its texts are the failover's. */
struct bl_config bl_failover_config(struct bl_failover *f);

/* Sets the password for connections that are made from now on. NULL: none. NOMEM. */
int bl_failover_password(struct bl_failover *f, const char *password, struct bl_err *err);

/* One dial, and the last step of its thread: for store/hosts/race.c. config: as it was when it
 * began. */
int bl_failover_dial(struct bl_failover *f, const struct bl_config *config,
                     const struct bl_host *host, bool in_group, struct bl_session *ret,
                     struct bl_err *err);
void bl_failover_dialed(struct bl_failover *f);

/* Notes that the session's host has not answered, or refuses to serve now. */
void bl_failover_note(struct bl_failover *f, const struct bl_session *s);

/* Was bl_failover_note() called for the session's host after `since`? Then a statement would
 * probably wait as long again. */
bool bl_failover_noted_since(struct bl_failover *f, const struct bl_session *s, bl_time since);

/* Was it called so, and has the host not answered after that? */
bool bl_failover_silent_since(struct bl_failover *f, const struct bl_session *s, bl_time since);

/* Notes that the session's host has answered. */
void bl_failover_heard(struct bl_failover *f, const struct bl_session *s);

/* Has the session's host answered after `since`? True for the only host. */
bool bl_failover_heard_since(struct bl_failover *f, const struct bl_session *s, bl_time since);

/* For the trace: the session's server, or its host if the server did not say who it is. */
const char *bl_failover_name(const struct bl_failover *f, const struct bl_session *s);

/* Would a host that comes before the session's be tried first now? since: when the session was
 * opened. Clients of a cluster meet at its first host again: at one member they wake each other,
 * and are served in the order of their arrival. */
bool bl_failover_prefers_another(struct bl_failover *f, const struct bl_session *s, bl_time since);

#endif
