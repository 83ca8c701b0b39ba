/* The parts of the program hostile: what stands between a client and the server (relay.c, link.c),
 * what the packets of a reply are (reply.c), which lies there are (lies.c) and how they are told
 * (tell.c), what is done meanwhile (scenario.c, together.c, looks.c, run.c), and what must be true
 * afterwards (truth.c). */
#ifndef TEST_HOSTILE_H
#define TEST_HOSTILE_H

#include <bizlock.h>
#include <bizlock_ops.h>
#include <bizlock_tx.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "keyset.h"
#include "world.h"

/* ---- packets of replies (reply.c) -------------------------------------------------- */

enum kind {
	GREETING,
	LOGIN, /* what else comes before the login is over */
	OK,
	ERROR,
	PREPARED,
	COUNT, /* of columns */
	COLUMN,
	COLUMNS_END,
	ROW, /* as text */
	BINARY_ROW,
	ROWS_END,
	KINDS
};

extern const char *const kind_names[KINDS];

/* The payload of a packet; there is room for PACKET_ROOM bytes more. */
struct packet {
	unsigned char *data;
	size_t len;
	enum kind kind;
};

enum { PACKET_ROOM = 70000, COMMANDS_MAX = 64, HEADER = 4 };
enum { PACE_MS = 10 };

#define MORE_RESULTS 8u
#define ENDLESS_PACKET 0xffffff /* its length: another one follows, and belongs to it */

/* Where the server stands in its reply. All zero: before its greeting. */
struct reply {
	enum { BEFORE_LOGIN, IN_LOGIN, FIRST, PARAMETERS, COLUMNS, ROWS } state;
	bool short_ends; /* CLIENT_DEPRECATE_EOF: columns have no end, and that of rows is an OK */
	unsigned columns, columns_later; /* still to come; those behind the parameters */
	unsigned char commands[COMMANDS_MAX];
	unsigned asked, answered; /* commands */
};

/* A packet of the client's. */
void reply_asked(struct reply *r, unsigned char number, const unsigned char *data, size_t len);

/* The next packet of the server's; sets its kind. */
void reply_next(struct reply *r, struct packet *p);

/* Does the reply to the present command come to a PREPARE? */
bool reply_prepares(const struct reply *r);

/* Where the status flags stand in an OK or an end; NULL: there are none. */
unsigned char *reply_flags(const struct packet *p);

/* ---- lies (lies.c) ------------------------------------------------------------------- */

/* What the client gets in the place of one packet. */
struct told {
	struct packet *truth;
	void *link;  /* for tell() */
	bool flood;  /* the last packet comes again and again, for ever */
	size_t pace; /* of the flood: bytes in PACE_MS. 0: as many as the client takes */
	unsigned char skew;
	size_t length; /* what the header says, unless 0 */
	unsigned seed;
};

void tell(struct told *t, const unsigned char *data, size_t len);

struct lie {
	const char *name;
	unsigned kinds;      /* 1 << kind: of which packets it can be told */
	unsigned noticeable; /* the same, of those of which it can be noticed: see lies.c */
	void (*fn)(struct told *t, uint64_t number);
	uint64_t number;
	bool slow; /* only a timeout ends it */
};

extern const struct lie lies[];
extern const unsigned lie_count;

/* Is it told so slowly that each read gets some bytes in time, and so never ends by itself? */
bool lie_trickles(const struct lie *lie);

/* ---- between client and server (relay.c) ---------------------------------------------- */

struct plan {
	const struct lie *lie; /* NULL: the truth */
	unsigned packet;       /* from which on, counted since it was armed */
	bool ever;             /* of each packet of this kind from there on */
	unsigned seed;
};

enum { TRACE_MAX = 4096 };

struct trace {
	unsigned count;
	unsigned char kinds[TRACE_MAX];
};

/* Since it was armed. */
struct seen {
	unsigned shots;
	unsigned told; /* 1 << kind: of which packets the lie was told */
	unsigned requests;
	bool swallowed; /* a client took whatever it was sent */
	struct trace trace;
};

struct relay;

struct relay *relay_start(const struct server *upstream);
void relay_stop(struct relay *relay);
struct server relay_address(const struct relay *relay);
void relay_arm(struct relay *relay, const struct plan *plan); /* NULL: the truth again */
void relay_refuse_prepare(struct relay *relay, bool refuse);  /* as if there were no room for it */
struct seen relay_seen(struct relay *relay);

/* ---- what is done (scenario.c), and what must be true (truth.c) ------------------------- */

#define LEASE_MS 60000
#define IO_MS 1000 /* the connectors know no shorter timeout */
#define WAIT_MS 1000
#define TX_READ_S 3
#define LIMIT_MS (WAIT_MS + 20 * IO_MS) /* no call takes longer, on a busy machine */
#define CLOSE_LIMIT_MS (IO_MS + 8000)   /* on a busy machine */
#define ROWS_THERE 300                  /* more than one page */
#define SET 3
#define MANY 8     /* requests, most of which travel together */
#define THREADS 16 /* so many for FEW_CONNECTIONS that some of their calls do, too */
#define ME "me"

struct bench {
	struct world world;
	struct relay *relay;
	bizlock *stranger; /* past the relay */
	MYSQL *locker;
	unsigned serial; /* of the next run */
};

struct run {
	struct bench *bench;
	const struct scenario *scenario;
	const struct lie *lie; /* NULL: none */
	bizlock *b;
	MYSQL *tx;
	unsigned serial;
	char id[16]; /* its key, and what its other keys begin with */
	bizlock_grant grant;
	struct keyset set, more;
	struct row before;
	char text[BIZLOCK_EXPORT_MAX];
	uint64_t shown; /* by callbacks */
	atomic_bool told_of_loss;
	size_t read; /* bytes that they looked at */
	int rc;
	int64_t took_ms;
	char errmsg[512];
	struct seen seen;
	char why[1024]; /* why the run failed; "": it did not */
};

/* Alone, where others share it. */
#define AMONG 16u

struct scenario {
	const char *name;
	void (*prepare)(struct run *);
	int (*act)(struct run *);
	bool (*truth)(struct run *); /* of BIZLOCK_OK */
	/* TOGETHER: an honest server gets fewer requests than there are keys. */
	enum {
		PLAIN,
		QUEUE_OFF,
		UNPREPARED,
		CLOSED,
		FAST_RENEWAL,
		FEW_CONNECTIONS,
		TOGETHER
	} client;
	int rc; /* of an honest server */
	/* Of a lock that is shared: BIZLOCK_SHARED, or AMONG: how the client takes it. A stranger
	 * has it in another way. */
	uint32_t mode, limit;
};

extern const struct scenario scenarios[];
extern const unsigned scenario_count;

void stranger_releases(struct run *r, const char *owner);

int do_each(struct run *r); /* looks.c */
int do_each_of_type(struct run *r);
int do_each_run(struct run *r);
int do_look(struct run *r);
int do_waiters(struct run *r);
int do_doctor(struct run *r);
int do_each_migration(struct run *r);

int do_crowd(struct run *r); /* together.c */
int do_crowd_release(struct run *r);
int do_ask(struct run *r);
int do_ask_for_one(struct run *r);
int do_ask_to_release(struct run *r);
int do_ask_for_both(struct run *r);

struct row row_now(const struct run *r, const char *id);
int take(struct run *r, bizlock *b, const char *id, int64_t wait_ms, bizlock_grant *ret);

bool row_is_mine(struct run *r);
bool row_is_deep(struct run *r);
bool row_is_renewed(struct run *r);
bool row_is_alive(struct run *r);
bool row_is_gone(struct run *r);
bool set_is_mine(struct run *r);
bool set_is_gone(struct run *r);
bool set_is_gone_and_more_are_mine(struct run *r);
bool all_were_seen(struct run *r);
bool one_was_seen(struct run *r);
bool sharer_was_seen(struct run *r);
bool sharer_is_gone(struct run *r);
bool migrations_were_seen(struct run *r);
bool run_has_begun(struct run *r);
bool run_is_done(struct run *r);
bool stale_are_gone(struct run *r);
bool tables_work(struct run *r);
bool row_is_exported(struct run *r);
bool row_is_locked(struct run *r);
bool row_is_fenced(struct run *r);
bool ledger_is_written(struct run *r);
bool client_works(struct run *r);
bool nothing_is_said(struct run *r);

void bench_open(struct bench *bench);
void bench_close(struct bench *bench);
void run_plan(struct bench *bench, const struct scenario *s, const struct plan *plan,
              struct run *ret);

/* Sets r->why. False. */
bool wrong(struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
