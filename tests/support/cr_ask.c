#include "cr_ask.h"

#include <poll.h>
#include <stdio.h>

static int turns;

static void answered(void *arg, const bizlock_result *result)
{
	struct ask *a = arg;

	cr_assert_eq(result->size, sizeof(*result));
	cr_assert_eq(result->request, a->request);
	cr_assert_str_eq(result->key.biz_type, KEY("").biz_type);
	cr_assert_str_eq(result->key.biz_id, a->id);
	cr_assert_str_eq(result->owner, a->owner);
	a->calls++;
	a->rc = result->rc;
	a->turn = ++turns;
	a->by = pthread_self();
	a->server_error = result->server_error;
	a->granted = result->grant != NULL;
	if (result->grant)
		a->grant = *result->grant;
	snprintf(a->errmsg, sizeof(a->errmsg), "%s", result->message);
	if (a->rc != BIZLOCK_OK)
		cr_assert_str_eq(a->errmsg, bizlock_errmsg(a->b));
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
	expect(OK, b, bizlock_acquire_start(b, KEY(a->id), &opts, answered, a, &a->request));
}

void ask_release(struct ask *a)
{
	a->calls = 0;
	expect(OK, a->b,
	       bizlock_release_start(a->b, KEY(a->id), a->owner, answered, a, &a->request));
}

void ask_renew(struct ask *a, uint32_t lease_ms)
{
	a->calls = 0;
	expect(OK, a->b,
	       bizlock_renew_start(a->b, KEY(a->id), a->owner, lease_ms, answered, a, &a->request));
}

void ask_cancel(const struct ask *a)
{
	expect(OK, a->b, bizlock_cancel(a->b, a->request));
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
