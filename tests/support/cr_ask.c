#include "cr_ask.h"

#include <poll.h>
#include <stdio.h>

static int turns;

static void answered(void *arg, int rc, const bizlock_grant *grant)
{
	struct ask *a = arg;

	a->calls++;
	a->rc = rc;
	a->turn = ++turns;
	a->by = pthread_self();
	a->op = NULL;
	if (grant)
		a->grant = *grant;
	if (rc != BIZLOCK_OK)
		snprintf(a->errmsg, sizeof(a->errmsg), "%s", bizlock_errmsg(a->b));
}

void ask_with(struct ask *a, bizlock *b, const char *id, const char *owner,
              bizlock_acquire_opts opts)
{
	*a = (struct ask){.b = b};
	snprintf(a->id, sizeof(a->id), "%s", id);
	snprintf(a->owner, sizeof(a->owner), "%s", owner);
	opts.owner = a->owner;
	if (!opts.lease_ms)
		opts.lease_ms = 20 * PATIENCE_MS;
	expect(OK, b, bizlock_acquire_start(b, KEY(a->id), &opts, answered, a, &a->op));
}

void ask_release(struct ask *a)
{
	a->calls = 0;
	expect(OK, a->b, bizlock_release_start(a->b, KEY(a->id), a->owner, answered, a));
}

bool is_readable(bizlock *b)
{
	struct pollfd fd = {.fd = bizlock_fd(b), .events = POLLIN};

	cr_assert_geq(fd.fd, 0);
	return poll(&fd, 1, 0) == 1;
}

void dispatch_once(bizlock *b)
{
	struct pollfd fd = {.fd = bizlock_fd(b), .events = POLLIN};

	cr_assert_geq(fd.fd, 0);
	poll(&fd, 1, 50);
	expect(OK, b, bizlock_dispatch(b, NULL));
}
