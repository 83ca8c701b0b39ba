/* Requests of bizlock_async.h, and what has become of them. */
#ifndef TEST_CR_ASK_H
#define TEST_CR_ASK_H

#include <bizlock_async.h>

#include "cr_test.h"
#include "keyset.h"

struct ask {
	bizlock *b;
	char id[16], owner[24];
	uint64_t request;

	/* ANSWERED */
	int calls, rc, turn; /* turn: as which of all it was answered, from 1 on */
	bool granted;        /* a grant was told, */
	bizlock_grant grant;
	unsigned server_error;
	char errmsg[512];
	pthread_t by; /* the thread that was in the library */
};

/* ask_for(&a, b, "k", "task-1", .wait_ms = -1): options as of OPTS(), but for the owner. With a
 * lease that outlasts the test, unless one is given. The request must be accepted. */
void ask_with(struct ask *a, bizlock *b, const char *id, const char *owner,
              bizlock_acquire_opts opts);
#define ask_for(a, b, id, owner, ...) ask_with((a), (b), (id), (owner), OPTS(__VA_ARGS__))

#define ask_once(a, b, id, owner) ask_for((a), (b), (id), (owner), .wait_ms = 0)

/* Gives back what `a` was granted; `a` is used again. */
void ask_release(struct ask *a);

/* Renews it; the same. */
void ask_renew(struct ask *a, uint32_t lease_ms);

void ask_cancel(const struct ask *a);

/* A request of several keys; `ask` has the id of the first. */
struct ask_all {
	struct ask ask;
	struct keyset keys; /* gets the grants */
};

/* ask_all_for(&a, b, "task-1", .wait_ms = -1): the same for a->keys, which were made before. */
void ask_all_with(struct ask_all *a, bizlock *b, const char *owner, bizlock_acquire_opts opts);
#define ask_all_for(a, b, owner, ...) ask_all_with((a), (b), (owner), OPTS(__VA_ARGS__))

void ask_all_release(struct ask_all *a);

/* All keys are held, as they were granted. Gives them all back; none is held afterwards. */
void ask_all_has(const struct ask_all *a);
void ask_all_gives_back(struct ask_all *a);

/* Dispatches for a moment, by the descriptor. */
void dispatch_once(bizlock *b);

/* A statement: dispatches until cond holds, or dies. */
#define dispatch_until(b, cond)                                                                    \
	for (int64_t end_ = now_ms() + PATIENCE_MS; !(cond); dispatch_once(b))                     \
		if (now_ms() > end_)                                                               \
	die("%s:%d: never happened: %s", __FILE__, __LINE__, #cond)

/* Is the descriptor readable now? */
bool is_readable(bizlock *b);

/* Dispatches until it is answered, which must be `want`. */
#define ask_ends(want, a)                                                                          \
	do {                                                                                       \
		dispatch_until((a)->b, (a)->calls > 0);                                            \
		cr_assert_eq((a)->calls, 1);                                                       \
		cr_assert((a)->rc == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", (a)->id,        \
		          bizlock_err_name((a)->rc), #want, (a)->errmsg);                          \
	} while (0)

#endif
