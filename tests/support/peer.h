/* Another process with a client of its own, which does what the test asks.
 * It dies with the thread that started it. */
#ifndef TEST_PEER_H
#define TEST_PEER_H

#include <bizlock.h>
#include <stdbool.h>
#include <sys/types.h>

#include "world.h"

struct peer {
	pid_t pid;
	int fd;
};

struct answer {
	int rc;
	bizlock_grant grant; /* of an acquisition */
	uint32_t depth;      /* the levels that a release has left */
	int64_t left_ms;     /* by bizlock_left_ms(), before the call */
	unsigned lost;       /* holds reported lost so far, of any key */
	uint64_t lost_fence; /* of the last loss */
	char errmsg[512];    /* "" if OK */
	char text[BIZLOCK_EXPORT_MAX];
};

/* Forks: keys are of type "test" throughout, owners the peer's one thread. */
struct peer peer_start(const struct world *w, const char *const *options);

/* A field that is not named is zero: one try, with the client's default lease. */
struct peer_args {
	const char *id;
	int64_t wait_ms; /* -1: for ever */
	uint32_t lease_ms;
	bool renewed;
};

/* peer_ask_acquire(&p, "k", .wait_ms = -1): asks, without waiting for the answer. */
#define peer_ask_acquire(p, ...) peer_ask_acquire_with((p), (struct peer_args){.id = __VA_ARGS__})
void peer_ask_acquire_with(struct peer *p, struct peer_args args);
bool peer_has_answer(const struct peer *p);
struct answer peer_answer(struct peer *p);

/* Asks and waits. */
#define peer_acquire(p, ...) peer_acquire_with((p), (struct peer_args){.id = __VA_ARGS__})
struct answer peer_acquire_with(struct peer *p, struct peer_args args);
struct answer peer_release(struct peer *p, const char *id);
struct answer peer_renew(struct peer *p, const char *id);
struct answer peer_verify(struct peer *p, const char *id);

/* peer_export: the text of bizlock_export(). peer_import: bizlock_import() of such a text; the
 * peer's client renews the hold. */
struct answer peer_export(struct peer *p, const char *id, char text[BIZLOCK_EXPORT_MAX]);
struct answer peer_import(struct peer *p, const char *text);

/* Asks for no call: only for what the peer knows without one. */
struct answer peer_look(struct peer *p, const char *id);

/* SIGSTOP: returns when it has stopped. SIGKILL: when it is gone. */
void peer_signal(struct peer *p, int signal);

/* Kills the peer, unless that was done. */
void peer_end(struct peer *p);

#endif
