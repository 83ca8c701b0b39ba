/* For integration tests, which run under Criterion, each in a process. */
#ifndef TEST_CR_TEST_H
#define TEST_CR_TEST_H

#include <bizlock.h>
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "call.h"
#include "cr_world.h"
#include "db.h"
#include "losses.h"
#include "own_server.h"
#include "patience.h"
#include "peer.h"
#include "proxy.h"

/* A client that world_end() closes. options: may be NULL. */
bizlock *client(const char *const *options);

/* The same, through the proxy p, unencrypted. */
bizlock *client_through(const struct proxy *p, const char *const *options);

/* To clients that connect through p, the server seems to be of the version `mysql` or `mariadb`.
 * Each is two numbers, with no more digits than the true ones. Returns what clients are told. */
const char *seem_older(struct proxy *p, const char *mysql, const char *mariadb);

/* Calls fn(arg) in another thread and waits for its end. */
void in_another_thread(void (*fn)(void *arg), void *arg);

/* The whole row of a key as text, to see whether it changed. "" if there is
 * none. Kept until the test ends. */
const char *row_text(const char *id);

/* The call must answer `want` (OK, BUSY, ...). b: the client whose message is shown if it does
 * not. */
#define expect(want, b, call)                                                                      \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", #call,             \
		          bizlock_err_name(got_), #want, bizlock_errmsg(b));                       \
	} while (0)

/* The last failed call's message must contain `text`. */
#define expect_message(b, text)                                                                    \
	cr_assert(strstr(bizlock_errmsg(b), (text)), "\"%s\" not in: %s", (text), bizlock_errmsg(b))

/* The same for the answer of a peer. */
#define expect_answer(want, call)                                                                  \
	do {                                                                                       \
		struct answer a_ = (call);                                                         \
		cr_assert(a_.rc == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", #call,            \
		          bizlock_err_name(a_.rc), #want, a_.errmsg);                              \
	} while (0)

/* Ends the test as skipped, which is a failure where BIZLOCK_SKIPS_FAIL=1. */
#define skip_unless(cond, why)                                                                     \
	do {                                                                                       \
		if (!(cond) && skips_fail())                                                       \
			cr_assert_fail("skipped, which must not be: %s", (why));                   \
		if (!(cond))                                                                       \
			cr_skip_test("%s", (why));                                                 \
	} while (0)

/* The same, for something that this server or system cannot be made to have. Never a failure. */
#define not_here_unless(cond, why)                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			cr_skip_test("not here: %s", (why));                                       \
	} while (0)

bool skips_fail(void);

/* A field that is not named is zero: one try, by the calling thread, with the client's default
 * lease. */
struct acquire_args {
	const char *id;
	int64_t wait_ms; /* -1: for ever */
	uint32_t lease_ms;
	const char *owner;
	bizlock_grant *grant; /* the grant is written there, unless NULL */
};

int acquire_with(bizlock *b, uint32_t flags, struct acquire_args args);

/* acquire(b, "k", .wait_ms = -1, .lease_ms = 60000): one acquisition, not renewed. */
#define acquire(b, ...)                                                                            \
	acquire_with((b), BIZLOCK_NO_RENEW, (struct acquire_args){.id = __VA_ARGS__})

/* The same, renewed as the client's options say. */
#define acquire_renewed(b, ...) acquire_with((b), 0, (struct acquire_args){.id = __VA_ARGS__})

/* acquire_as(b, "k", "task-1"): the same for a named owner, with a lease that outlasts every test,
 * so that a waiter cannot get the lock by the end of a lease. Takes .wait_ms and .grant. */
#define acquire_as(b, key_id, ...)                                                                 \
	acquire_with((b), 0,                                                                       \
	             (struct acquire_args){                                                        \
	                     .id = (key_id), .lease_ms = 20 * PATIENCE_MS, .owner = __VA_ARGS__})

/* The options themselves, for the calls that take them: one try, unless .wait_ms says otherwise. */
#define OPTS(...) ((bizlock_acquire_opts){.size = sizeof(bizlock_acquire_opts), __VA_ARGS__})

/* Takes "k" and gives it back: the client works. */
void works(bizlock *b);

/* How long b takes now to take a free key and give it back, on this machine, as busy as it is. For
 * bounds of what is to be sooner than something else that takes its time: measured beside it, again
 * and again, because others come and go. */
int64_t round_ms(bizlock *b);

/* A lease of quiet_ms, and of ten rounds more: so that a machine that is busy can do in time what
 * the test needs it for. */
uint32_t busy_lease_ms(bizlock *b, uint32_t quiet_ms);

/* These clients, of different members of a cluster, take one key over from each other many times,
 * with fences that grow: the counter of each member has to follow what was changed at another. */
void takeovers_in_turn(bizlock *const *b, int n);

/* Opens a client with these options: its code, and its message in `text`. */
int try_open(const struct world *w, const char *const *options, char text[512]);

/* The code must be `want`, and the message must contain `word`. */
#define expect_open(want, w, options, word)                                                        \
	do {                                                                                       \
		char text_[512];                                                                   \
		int got_ = try_open((w), (options), text_);                                        \
		cr_assert(got_ == BIZLOCK_##want, "%s, not BIZLOCK_%s: %s",                        \
		          bizlock_err_name(got_), #want, text_);                                   \
		cr_assert(strstr(text_, (word)), "\"%s\" not in: %s", (word), text_);              \
	} while (0)

/* A new file in /tmp, which the test removes. */
void write_file(char path[32], const char *text);

/* Ends every connection to the schema but the test's own. */
void kill_connections(void);

/* Waits until the lease of `id` is over by the server's clock. */
void lease_is_over(const char *id);

/* Times by the server's clock, in µs since 1970: now; when the hold of `id` began; when the row of
 * `id` last changed. */
long long server_us(void);
long long began_us(const char *id);
long long modified_us(const char *id);

/* A test that may cause deadlocks in the server by design (queue=off, parallel migrations) says so.
 * A test that counts deadlocks does not run at the same time as such a test. */
void deadlocks_may_happen(void);
void deadlocks_are_counted(void);

#endif
