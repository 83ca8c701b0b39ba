/* What is done by requests of an event loop while the network fails. */
#include <bizlock_async.h>
#include <poll.h>
#include <stdio.h>

#include "cuts.h"
#include "patience.h"

#define POLLS_MS 200 /* it has looked a few times by then */

static void told(void *arg, const bizlock_result *result)
{
	struct run *r = arg;

	if (r->told++)
		die("told twice");
	r->rc = result->rc;
	if (result->grant)
		r->grant = *result->grant;
	snprintf(r->errmsg, sizeof(r->errmsg), "%s", result->message);
}

static int wait_until_told(struct run *r)
{
	struct pollfd fd = {.fd = bizlock_fd(r->b), .events = POLLIN};

	for (int64_t end = now_ms() + PATIENCE_MS; !r->told;) {
		if (now_ms() > end)
			die("%s: never told", r->scenario->name);
		poll(&fd, 1, 20);
		must_work(r->b, bizlock_dispatch(r->b, NULL), "dispatch");
	}
	return r->rc;
}

static void start(struct run *r, int64_t wait_ms)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = wait_ms;
	opts.lease_ms = LEASE_MS;
	opts.owner = ME;
	opts.flags = r->scenario->mode & BIZLOCK_SHARED;
	opts.limit = r->scenario->limit;
	must_work(r->b, bizlock_acquire_start(r->b, KEY(r->id), &opts, told, r, NULL), "start");
}

int ask_for(struct run *r)
{
	start(r, r->wait_ms);
	return wait_until_told(r);
}

int ask_once(struct run *r)
{
	start(r, 0);
	return wait_until_told(r);
}

/* Nothing shows that a request for a shared lock waits; it polls. */
int ask_and_wait(struct run *r)
{
	start(r, r->wait_ms);
	for (int64_t end = now_ms() + (r->scenario->mode ? POLLS_MS : 3 * HASTY_IO_MS);
	     now_ms() < end && !watchers(&r->bench->world) && !r->point->off;)
		pause_ms(1);
	must_work(r->holder, bizlock_release(r->holder, KEY(r->id), "holder", NULL), "the holder");
	return wait_until_told(r);
}

int ask_release(struct run *r)
{
	must_work(r->b, bizlock_release_start(r->b, KEY(r->id), ME, told, r, NULL), "start");
	return wait_until_told(r);
}

int ask_renew(struct run *r)
{
	must_work(r->b, bizlock_renew_start(r->b, KEY(r->id), ME, 0, told, r, NULL), "start");
	return wait_until_told(r);
}
