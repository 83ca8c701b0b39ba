/* What is done while the network fails. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "cuts.h"
#include "patience.h"
#include "stale.h"

const char *const what_names[] = {"cut",          "cut-again", "cut-ever", "swallow",
                                  "swallow-ever", "delay",     "late",     "nothing"};

/* ---- before it ------------------------------------------------------------- */

struct row row_now(const struct run *r)
{
	return r->scenario->mode ? shared_row_of(&r->bench->world, KEY(r->id))
	                         : row_of(&r->bench->world, KEY(r->id));
}

static uint32_t mode_of(const struct run *r, const char *owner)
{
	const struct scenario *s = r->scenario;

	if (!s->mode || strcmp(owner, ME) == 0 || strcmp(owner, FIRST) == 0)
		return s->mode & BIZLOCK_SHARED;
	if (strcmp(owner, "holder") == 0 && (s->mode == AMONG || s->limit))
		return BIZLOCK_SHARED;
	return 0;
}

int take(bizlock *b, struct run *r, const char *owner, int64_t wait_ms, bizlock_grant *ret)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = wait_ms;
	opts.lease_ms = LEASE_MS;
	opts.owner = owner;
	opts.flags = mode_of(r, owner);
	opts.limit = opts.flags ? r->scenario->limit : 0;
	return bizlock_acquire(b, KEY(r->id), &opts, ret);
}

/* Somebody has shared it before, where it is shared. */
static void nobody_holds(struct run *r)
{
	if (r->scenario->mode)
		stale_header(r->bench->world.admin, r->id);
}

/* There is no slot 0: one that shares it has to make the header. */
static void nobody_has_shared(struct run *r)
{
	db_run(r->bench->world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY(r->id)));
}

/* A dead process has left its row behind. */
static void somebody_held(struct run *r)
{
	if (r->scenario->mode)
		stale_shared_lease(r->bench->world.admin, r->id, r->scenario->mode == AMONG, 1000);
	else
		stale_lease(r->bench->world.admin, r->id, 1000);
	r->theirs = row_now(r);
}

static void somebody_holds(struct run *r)
{
	must_work(r->holder, take(r->holder, r, "holder", PROMPT_MS, NULL), "the holder");
	r->theirs = row_now(r);
}

/* Another owner of the same client. */
static void first_holds(struct run *r)
{
	must_work(r->b, take(r->b, r, FIRST, PROMPT_MS, NULL), "the first");
	r->theirs = row_now(r);
}

/* Alone, it takes a header that is there. */
static void i_hold(struct run *r)
{
	if (r->scenario->mode == AMONG)
		stale_header(r->bench->world.admin, r->id);
	for (unsigned i = 0; i < r->scenario->before; i++)
		must_work(r->b, take(r->b, r, ME, PROMPT_MS, &r->grant), "the hold");
}

/* ---- it ---------------------------------------------------------------------- */

static int do_acquire(struct run *r)
{
	return take(r->b, r, ME, r->wait_ms, &r->grant);
}

static int do_try(struct run *r)
{
	return take(r->b, r, ME, 0, &r->grant);
}

/* Has the call begun to wait? A client that polls does nothing else from the third packet on, or
 * from the seventh if it has to log in and prepare two statements. */
static bool waits(struct run *r, unsigned packets)
{
	if (r->point->off)
		return proxy_packets(r->bench->proxy) >= packets + (r->scenario->cold ? 7 : 3);
	return doorbell_waiters(&r->bench->world) + shared_sleepers(&r->bench->world) > 0;
}

static void call_me(struct run *r, struct call *call)
{
	call_prepare(call, r->b, r->id, .wait_ms = r->wait_ms, .owner = ME);
	call->opts.flags = r->scenario->mode & BIZLOCK_SHARED;
	call->opts.limit = r->scenario->limit;
	call_go(call);
}

static int join_me(struct run *r, struct call *call)
{
	call_join(call);
	r->grant = call->grant;
	snprintf(r->errmsg, sizeof(r->errmsg), "%s", call->errmsg);
	return call->rc;
}

/* The holder releases, even if the fault keeps the call from waiting. */
static int do_wait(struct run *r)
{
	unsigned packets = proxy_packets(r->bench->proxy);
	struct call call;

	call_me(r, &call);
	for (int64_t end = now_ms() + 3 * HASTY_IO_MS;
	     now_ms() < end && !atomic_load(&call.done) && !waits(r, packets);)
		pause_ms(1);
	must_work(r->holder, bizlock_release(r->holder, KEY(r->id), "holder", NULL), "the holder");
	return join_me(r, &call);
}

/* The first hands it over. */
static int do_pass(struct run *r)
{
	struct call call;
	int rc;

	call_me(r, &call);
	call_blocks_or_ends(&call);
	rc = bizlock_release(r->b, KEY(r->id), FIRST, NULL);
	if (is_prompt(r->point->what))
		must_work(r->b, rc, "the first's release");
	return join_me(r, &call);
}

static int do_release(struct run *r)
{
	return bizlock_release(r->b, KEY(r->id), ME, NULL);
}

static int do_renew(struct run *r)
{
	return bizlock_renew(r->b, KEY(r->id), ME, 0);
}

int do_downgrade(struct run *r)
{
	return bizlock_downgrade(r->b, KEY(r->id), ME);
}

static int do_verify(struct run *r)
{
	return bizlock_verify(r->b, KEY(r->id), ME);
}

static int do_break(struct run *r)
{
	return bizlock_break(r->b, KEY(r->id), r->theirs.fence);
}

static int do_open(struct run *r)
{
	return bizlock_open(r->b);
}

static int do_close(struct run *r)
{
	bizlock_close(r->b);
	r->b = NULL;
	return BIZLOCK_OK;
}

#define SHARED(mode, limit, name, ...)                                                             \
	{name, __VA_ARGS__, false, mode, limit},                                                   \
	{                                                                                          \
		"cold-" name, __VA_ARGS__, true, mode, limit                                       \
	}
#define BOTH(...) SHARED(0, 0, __VA_ARGS__)
#define S BIZLOCK_SHARED
#define X AMONG

const struct scenario scenarios[] = {
        BOTH("acquire", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, do_acquire),
        BOTH("takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, do_acquire),
        BOTH("wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, do_wait),
        BOTH("pass", GAINS, 1, 1, BIZLOCK_OK, first_holds, do_pass),
        BOTH("busy", SHUT_OUT, 0, 0, BIZLOCK_BUSY, somebody_holds, do_try),
        BOTH("reenter", HOLDS, 1, 2, BIZLOCK_OK, i_hold, do_acquire),
        BOTH("inner", HOLDS, 2, 1, BIZLOCK_OK, i_hold, do_release),
        BOTH("release", HOLDS, 1, 0, BIZLOCK_OK, i_hold, do_release),
        BOTH("renew", HOLDS, 1, 1, BIZLOCK_OK, i_hold, do_renew),
        BOTH("verify", HOLDS, 1, 1, BIZLOCK_OK, i_hold, do_verify),
        BOTH("break", BREAKS, 0, 0, BIZLOCK_OK, somebody_holds, do_break),
        BOTH("close", CLOSES, 1, 0, BIZLOCK_OK, i_hold, do_close),
        BOTH("ask", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, ask_for),
        BOTH("ask-takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, ask_for),
        BOTH("ask-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, ask_and_wait),
        BOTH("ask-busy", SHUT_OUT, 0, 0, BIZLOCK_BUSY, somebody_holds, ask_once),
        BOTH("ask-release", HOLDS, 1, 0, BIZLOCK_OK, i_hold, ask_release),
        BOTH("ask-renew", HOLDS, 1, 1, BIZLOCK_OK, i_hold, ask_renew),
        SHARED(S, 0, "share", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, do_acquire),
        SHARED(S, 0, "share-first", GAINS, 0, 1, BIZLOCK_OK, nobody_has_shared, do_acquire),
        SHARED(S, 0, "share-takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, do_acquire),
        SHARED(S, 0, "share-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, do_wait),
        SHARED(S, 0, "share-reenter", HOLDS, 1, 2, BIZLOCK_OK, i_hold, do_acquire),
        SHARED(S, 0, "share-release", HOLDS, 1, 0, BIZLOCK_OK, i_hold, do_release),
        SHARED(S, 0, "share-renew", HOLDS, 1, 1, BIZLOCK_OK, i_hold, do_renew),
        SHARED(S, 0, "share-close", CLOSES, 1, 0, BIZLOCK_OK, i_hold, do_close),
        SHARED(S, 1, "slot", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, do_acquire),
        SHARED(S, 1, "slot-first", GAINS, 0, 1, BIZLOCK_OK, nobody_has_shared, do_acquire),
        SHARED(S, 1, "slot-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, do_wait),
        SHARED(S, 1, "slot-pass", GAINS, 1, 1, BIZLOCK_OK, first_holds, do_pass),
        SHARED(S, 1, "slot-busy", SHUT_OUT, 0, 0, BIZLOCK_BUSY, somebody_holds, do_try),
        SHARED(X, 0, "alone", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, do_acquire),
        SHARED(X, 0, "alone-takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, do_acquire),
        SHARED(X, 0, "alone-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, do_wait),
        SHARED(X, 0, "alone-busy", SHUT_OUT, 0, 0, BIZLOCK_BUSY, somebody_holds, do_try),
        SHARED(X, 0, "alone-release", HOLDS, 1, 0, BIZLOCK_OK, i_hold, do_release),
        SHARED(X, 0, "downgrade", HOLDS, 1, 1, BIZLOCK_OK, i_hold, do_downgrade),
        SHARED(X, 0, "alone-break", BREAKS, 0, 0, BIZLOCK_OK, somebody_holds, do_break),
        SHARED(X, 0, "alone-close", CLOSES, 1, 0, BIZLOCK_OK, i_hold, do_close),
        SHARED(S, 0, "ask-share", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, ask_for),
        SHARED(S, 0, "ask-share-first", GAINS, 0, 1, BIZLOCK_OK, nobody_has_shared, ask_for),
        SHARED(S, 0, "ask-share-takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, ask_for),
        SHARED(S, 0, "ask-share-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, ask_and_wait),
        SHARED(S, 0, "ask-share-release", HOLDS, 1, 0, BIZLOCK_OK, i_hold, ask_release),
        SHARED(S, 1, "ask-slot-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, ask_and_wait),
        SHARED(X, 0, "ask-alone", GAINS, 0, 1, BIZLOCK_OK, nobody_holds, ask_for),
        SHARED(X, 0, "ask-alone-takeover", GAINS, 0, 1, BIZLOCK_OK, somebody_held, ask_for),
        SHARED(X, 0, "ask-alone-wait", GAINS, 0, 1, BIZLOCK_OK, somebody_holds, ask_and_wait),
        SHARED(X, 0, "ask-alone-busy", SHUT_OUT, 0, 0, BIZLOCK_BUSY, somebody_holds, ask_once),
        {"open", OPENS, 0, 0, BIZLOCK_OK, nobody_holds, do_open, false, 0, 0},
};
const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);

/* ---- a run ------------------------------------------------------------------- */

static struct fault fault_of(const struct point *p)
{
	static const enum fault_what what[] = {
	        [CUT_AGAIN] = FAULT_CUT,        [CUT] = FAULT_CUT,
	        [CUT_EVER] = FAULT_CUT,         [SWALLOW] = FAULT_SWALLOW,
	        [SWALLOW_EVER] = FAULT_SWALLOW, [DELAY] = FAULT_DELAY,
	        [LATE] = FAULT_DELAY,           [NOTHING] = FAULT_NONE,
	};

	return (struct fault){.what = what[p->what],
	                      .side = p->side,
	                      .packet = p->packet,
	                      .byte = p->byte,
	                      .delay_ms = p->what == LATE ? LATE_MS : DELAY_MS,
	                      .again = p->what == CUT_AGAIN ? p->again : 0,
	                      .for_ever = p->what == CUT_EVER || p->what == SWALLOW_EVER};
}

static int64_t patience_with(enum what what)
{
	if (is_prompt(what))
		return 2 * PROMPT_MS;
	return what == CUT_EVER || what == SWALLOW_EVER ? 2 * HASTY_IO_MS : 4 * HASTY_IO_MS;
}

static void suffer(struct run *r)
{
	struct proxy *p = r->bench->proxy;
	struct fault fault = fault_of(r->point);
	int64_t start;

	proxy_arm(p, &fault);
	start = now_ms();
	r->rc = r->scenario->act(r);
	r->took_ms = now_ms() - start;
	if (r->rc != BIZLOCK_OK && !r->errmsg[0] && r->b)
		snprintf(r->errmsg, sizeof(r->errmsg), "%s", bizlock_errmsg(r->b));
	r->fired = proxy_fired(p) > 0;
	r->trace = proxy_trace(p);
	proxy_arm(p, NULL);
	/* The network works again, but some connections have lost bytes. */
	if (r->point->what == SWALLOW || r->point->what == SWALLOW_EVER)
		proxy_cut(p);
	if (!is_prompt(r->point->what))
		bench_await_commits(r->bench);
}

void run_point(struct bench *bench, const struct point *point, struct run *ret)
{
	*ret = (struct run){.bench = bench,
	                    .point = point,
	                    .scenario = &scenarios[point->scenario],
	                    .holder = bench->holders[point->off],
	                    .stranger = bench->strangers[point->off],
	                    .grant = BIZLOCK_GRANT_INIT,
	                    .wait_ms = patience_with(point->what)};
	snprintf(ret->id, sizeof(ret->id), "%s-%u", ret->scenario->name, bench->serial);
	choose_client(ret);
	ret->scenario->prepare(ret);
	ret->fence = ret->theirs.fence > ret->grant.fence ? ret->theirs.fence : ret->grant.fence;
	if (ret->scenario->cold)
		proxy_cut(bench->proxy);
	suffer(ret);
	check_run(ret);
	if (ret->scenario->kind == OPENS)
		bizlock_close(ret->b);
	else if (ret->scenario->kind == CLOSES && ret->b)
		die("not closed");
}
