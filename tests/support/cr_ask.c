#include "cr_ask.h"

#include <poll.h>
#include <stdio.h>

#include "cr_keyset.h"

static int turns;

static void note(struct ask *a, const bizlock_result *result)
{
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

static void answered(void *arg, const bizlock_result *result)
{
	cr_assert_eq(result->count, 1);
	cr_assert_eq(result->keys[0].biz_id, result->key.biz_id);
	cr_assert_eq(result->grants ? result->grants[0] : NULL, result->grant);
	note(arg, result);
}

static void all_answered(void *arg, const bizlock_result *result)
{
	struct ask_all *a = arg;

	cr_assert_eq(result->count, a->keys.n);
	cr_assert_eq(result->grants ? result->grants[0] : NULL, result->grant);
	for (size_t i = 0; i < result->count; i++) {
		cr_assert_str_eq(result->keys[i].biz_type, a->keys.keys[i].biz_type);
		cr_assert_str_eq(result->keys[i].biz_id, a->keys.keys[i].biz_id);
		if (result->grants)
			a->keys.grants[i] = *result->grants[i];
	}
	note(&a->ask, result);
}

static void begin(struct ask *a, bizlock *b, const char *id, const char *owner,
                  bizlock_acquire_opts *opts)
{
	*a = (struct ask){.b = b};
	snprintf(a->id, sizeof(a->id), "%s", id);
	snprintf(a->owner, sizeof(a->owner), "%s", owner);
	opts->owner = a->owner;
	if (!opts->lease_ms)
		opts->lease_ms = 20 * PATIENCE_MS;
}

void ask_all_with(struct ask_all *a, bizlock *b, const char *owner, bizlock_acquire_opts opts)
{
	begin(&a->ask, b, a->keys.keys[0].biz_id, owner, &opts);
	keyset_forget(&a->keys);
	expect(OK, b,
	       bizlock_acquire_all_start(b, a->keys.keys, a->keys.n, &opts, all_answered, a,
	                                 &a->ask.request));
}

void ask_all_release(struct ask_all *a)
{
	a->ask.calls = 0;
	expect(OK, a->ask.b,
	       bizlock_release_all_start(a->ask.b, a->keys.keys, a->keys.n, a->ask.owner,
	                                 all_answered, a, &a->ask.request));
}

void ask_all_has(const struct ask_all *a)
{
	expect_granted(&a->keys, 0);
	expect_held(a->ask.b, &a->keys, a->ask.owner, 1);
}

void ask_all_gives_back(struct ask_all *a)
{
	ask_all_release(a);
	ask_ends(OK, &a->ask);
	expect_none(a->ask.b, &a->keys, a->ask.owner);
}

void ask_with(struct ask *a, bizlock *b, const char *id, const char *owner,
              bizlock_acquire_opts opts)
{
	begin(a, b, id, owner, &opts);
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
