/* Requests that one thread starts while the server lies. They travel together. */
#define _GNU_SOURCE 1
#include <bizlock_async.h>
#include <poll.h>
#include <stdio.h>

#include "hostile.h"
#include "patience.h"

/* One that is never done must not find a stack that is gone. */
static struct ask {
	struct run *r;
	bizlock_grant *grant;
	int rc;
	bool done;
} asks[2 * SET];

static void answered(void *arg, int rc, const bizlock_grant *grant)
{
	struct ask *a = arg;

	a->rc = rc;
	a->done = true;
	if (grant)
		*a->grant = *grant;
	if (rc != BIZLOCK_OK && !a->r->errmsg[0])
		snprintf(a->r->errmsg, sizeof(a->r->errmsg), "%s", bizlock_errmsg(a->r->b));
}

static void ask_for(struct run *r, struct ask *first, struct keyset *set)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = WAIT_MS;
	opts.lease_ms = LEASE_MS;
	opts.owner = ME;
	opts.flags = r->scenario->mode;
	for (size_t i = 0; i < set->n; i++) {
		first[i] = (struct ask){.r = r, .grant = &set->grants[i]};
		must_work(
		        r->b,
		        bizlock_acquire_start(r->b, set->keys[i], &opts, answered, &first[i], NULL),
		        "a start");
	}
}

static void ask_to_release(struct run *r, struct ask *first, const struct keyset *set)
{
	for (size_t i = 0; i < set->n; i++) {
		first[i] = (struct ask){.r = r};
		must_work(r->b, bizlock_release_start(r->b, set->keys[i], ME, answered, &first[i]),
		          "a start");
	}
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
		if (!asks[i].done)
			wrong(r, "a request is not done");
		if (rc == BIZLOCK_OK)
			rc = asks[i].rc;
	}
	return rc;
}

int do_ask(struct run *r)
{
	keyset_make(&r->set, SET, r->id);
	ask_for(r, asks, &r->set);
	return answers(r, SET);
}

int do_ask_to_release(struct run *r)
{
	ask_to_release(r, asks, &r->set);
	return answers(r, SET);
}

int do_ask_for_both(struct run *r)
{
	char prefix[24];

	snprintf(prefix, sizeof(prefix), "%s-b", r->id);
	keyset_make(&r->more, SET, prefix);
	ask_to_release(r, asks, &r->set);
	ask_for(r, asks + SET, &r->more);
	return answers(r, 2 * SET);
}
