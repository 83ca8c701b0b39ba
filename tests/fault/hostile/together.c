/* What travels together while the server lies: calls of many threads, and requests that one thread
 * starts. */
#define _GNU_SOURCE 1
#include <bizlock_async.h>
#include <poll.h>
#include <stdio.h>

#include "call.h"
#include "hostile.h"
#include "patience.h"

/* ---- of threads ------------------------------------------------------------------------------ */

static int join_all(struct run *r, struct call calls[THREADS])
{
	int rc = BIZLOCK_OK;

	for (int i = 0; i < THREADS; i++) {
		int one = call_join(&calls[i]);

		r->set.grants[i] = calls[i].grant;
		rc = rc == BIZLOCK_OK ? one : rc;
	}
	return rc;
}

int do_crowd(struct run *r)
{
	struct call calls[THREADS];

	keyset_make(&r->set, THREADS, r->id);
	for (int i = 0; i < THREADS; i++) {
		call_prepare(&calls[i], r->b, r->set.ids[i], .wait_ms = WAIT_MS, .owner = ME);
		calls[i].opts.flags = r->scenario->mode & BIZLOCK_SHARED;
		call_go(&calls[i]);
	}
	return join_all(r, calls);
}

int do_crowd_release(struct run *r)
{
	struct call calls[THREADS];

	for (int i = 0; i < THREADS; i++) {
		call_prepare(&calls[i], r->b, r->set.ids[i], .owner = ME);
		call_start_release(&calls[i]);
	}
	return join_all(r, calls);
}

/* ---- of one thread --------------------------------------------------------------------------- */

/* One that is never done must not find a stack that is gone. */
static struct ask {
	bizlock *b;
	bizlock_grant *grant;
	int rc;
	bool done;
	char errmsg[512];
} asks[MANY];

static void answered(void *arg, const bizlock_result *result)
{
	struct ask *a = arg;

	a->rc = result->rc;
	a->done = true;
	if (result->grant)
		*a->grant = *result->grant;
	snprintf(a->errmsg, sizeof(a->errmsg), "%s", result->message);
}

static void ask_for(struct run *r, struct ask *first, struct keyset *set)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = WAIT_MS;
	opts.lease_ms = LEASE_MS;
	opts.owner = ME;
	opts.flags = r->scenario->mode & BIZLOCK_SHARED;
	for (size_t i = 0; i < set->n; i++) {
		first[i] = (struct ask){.b = r->b, .grant = &set->grants[i]};
		must_work(
		        r->b,
		        bizlock_acquire_start(r->b, set->keys[i], &opts, answered, &first[i], NULL),
		        "a start");
	}
}

static void ask_to_release(struct run *r, struct ask *first, const struct keyset *set)
{
	for (size_t i = 0; i < set->n; i++) {
		first[i] = (struct ask){.b = r->b};
		must_work(r->b,
		          bizlock_release_start(r->b, set->keys[i], ME, answered, &first[i], NULL),
		          "a start");
	}
}

static void take_answer(struct run *r, const struct ask *a, int *rc)
{
	if (!a->done)
		wrong(r, "a request is not done");
	if (*rc != BIZLOCK_OK)
		return;
	*rc = a->rc;
	snprintf(r->errmsg, sizeof(r->errmsg), "%s", a->errmsg);
}

/* The first that is not OK. */
static int answers(struct run *r, size_t n)
{
	struct pollfd fd = {bizlock_fd(r->b), POLLIN, 0};
	int64_t end = now_ms() + LIMIT_MS;
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < n; i++) {
		while (!asks[i].done && now_ms() < end) {
			poll(&fd, 1, 100);
			must_work(r->b, bizlock_dispatch(r->b, NULL), "the dispatch");
		}
		take_answer(r, &asks[i], &rc);
	}
	return rc;
}

static int ask_for_keys(struct run *r, size_t n)
{
	keyset_make(&r->set, n, r->id);
	ask_for(r, asks, &r->set);
	return answers(r, n);
}

int do_ask(struct run *r)
{
	return ask_for_keys(r, MANY);
}

int do_ask_for_one(struct run *r)
{
	return ask_for_keys(r, 1);
}

int do_ask_to_release(struct run *r)
{
	ask_to_release(r, asks, &r->set);
	return answers(r, MANY);
}

int do_ask_for_both(struct run *r)
{
	char prefix[24];

	snprintf(prefix, sizeof(prefix), "%s-b", r->id);
	keyset_make(&r->more, MANY / 2, prefix);
	ask_to_release(r, asks, &r->set);
	ask_for(r, asks + MANY / 2, &r->more);
	return answers(r, MANY);
}
