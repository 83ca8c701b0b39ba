/* The trace: a line for each decision of a client, told to the function of bizlock_on_trace().
 *
 * A line is written where the decision is made, most often with the client's mutex held. It waits
 * in a ring of BL_TRACE_LINES until the trace's own thread calls the function, with no mutex held.
 * So a function that blocks, or calls bizlock, keeps nobody waiting: the ring fills, and lines that
 * find no room are counted. If the function were called where the line is written, a slow function
 * would delay renewals, and leases would be lost. */
#ifndef BL_CORE_TRACE_H
#define BL_CORE_TRACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/worker.h"
#include "bizlock_ops.h"
#include "core/key.h"
#include "core/owner.h"

#define BL_TRACE_LINES 1024

typedef void bl_trace_fn(void *arg, const bizlock_trace *line);

struct bl_trace_line;

struct bl_trace {
	atomic_bool on;             /* changes with `mu` held, and is read without it */
	pthread_mutex_t setting;    /* held while the thread is started or stopped */
	pthread_mutex_t mu;         /* guards the rest; no other mutex is taken meanwhile */
	struct bl_worker worker;    /* its thread; runs while a function is set */
	struct bl_trace_line *ring; /* NULL: no function is set */
	unsigned first, count;      /* of the lines in it */
	bl_trace_fn *fn;
	void *arg;
};

void bl_trace_init(struct bl_trace *t);

/* Lines go to fn from here on; NULL: to nobody. Earlier lines are first told to the earlier
 * function, which is not called any more once this returns. MISUSE: the caller is the earlier
 * function itself; NOMEM. */
int bl_trace_tell_to(struct bl_trace *t, bl_trace_fn *fn, void *arg, struct bl_err *err);

void bl_trace_end(struct bl_trace *t);    /* tells what is left */
void bl_trace_forget(struct bl_trace *t); /* the same in a forked child: tells nothing */

/* key, owner: whose line it is, or NULL. What is not printable is shown as '?'. */
void bl_trace_add(struct bl_trace *t, const struct bl_key *key, const struct bl_owner *owner,
                  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Whether a function is set. Costs a load, and a branch that is not taken. */
static inline bool bl_traces(const struct bl_trace *t)
{
	return __builtin_expect(atomic_load_explicit(&t->on, memory_order_relaxed), 0);
}

/* The arguments are not evaluated when no function is set. Any mutex may be held. */
#define BL_TRACE(t, key, owner, ...)                                                               \
	do {                                                                                       \
		if (bl_traces(t))                                                                  \
			bl_trace_add((t), (key), (owner), __VA_ARGS__);                            \
	} while (0)

/* A static probe bizlock:what for SystemTap and bpftrace, with biz_type, biz_id, owner and
 * fence. It is one instruction that does nothing; without <sys/sdt.h> at the build, none. */
#ifdef BL_HAVE_SDT
#include <sys/sdt.h>
#define BL_PROBE(what, key, owner, fence)                                                          \
	DTRACE_PROBE4(bizlock, what, &(key)->type[0], &(key)->id[0], &(owner)->name[0], fence)
#else
#define BL_PROBE(what, key, owner, fence) ((void)0)
#endif

#endif
