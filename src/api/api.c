/* The public door: argument checks, struct sizes, the thread's last error. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/args.h"
#include "api/door.h"
#include "client/client.h"

/* Like errno: each thread has its own, so that one thread's error never speaks
 * for another's. */
static _Thread_local struct {
	uint64_t client; /* its serial, 0: none: an address may be used again */
	struct bl_err err;
} last;

/* Where the call at hand writes its error. */
static struct bl_err *begin_error(void)
{
	static _Thread_local struct bl_err scratch;

	bl_err_clear(&scratch);
	return &scratch;
}

/* The last look at the client, which leave() may let go away. */
static int finish(const bizlock *b, const char *what, struct bl_err *err, int rc)
{
	if (rc == BIZLOCK_OK)
		return rc;
	bl_err_wrap(err, "%s", what);
	last.client = b ? b->serial : 0;
	last.err = *err;
	return rc;
}

static int check_process(const bizlock *b, struct bl_err *err)
{
	if (!b)
		return bl_err_set(err, BIZLOCK_INVALID, "the client is NULL");
	if (b->pid != getpid())
		return bl_err_set(err, BIZLOCK_MISUSE,
		                  "this client belongs to the parent process: open another one "
		                  "after fork");
	return BIZLOCK_OK;
}

/* Every OK needs a leave(). */
static int enter(bizlock *b, struct bl_err *err)
{
	int rc = check_process(b, err);

	if (rc != BIZLOCK_OK)
		return rc;
	pthread_mutex_lock(&b->mu);
	if (b->state == BL_CLIENT_OPEN)
		b->calls++;
	else
		rc = bl_err_set(err, BIZLOCK_MISUSE,
		                b->state == BL_CLIENT_NEW ? "the client is not open"
		                                          : "the client is being closed");
	pthread_mutex_unlock(&b->mu);
	return rc;
}

static void leave(bizlock *b)
{
	pthread_mutex_lock(&b->mu);
	if (--b->calls == 0)
		pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->mu);
}

int bl_door_in(bizlock *b, const char *what, struct bl_err **ret_err)
{
	*ret_err = begin_error();
	return finish(b, what, *ret_err, enter(b, *ret_err));
}

int bl_door_out(bizlock *b, const char *what, struct bl_err *err, int rc)
{
	finish(b, what, err, rc);
	leave(b);
	return rc;
}

int bizlock_new(bizlock **ret)
{
	static atomic_uint_least64_t serials;
	struct bl_err *err = begin_error();
	bizlock *b;

	if (!ret)
		return finish(NULL, "new", err, bl_err_set(err, BIZLOCK_INVALID, "ret is NULL"));
	b = calloc(1, sizeof(*b));
	if (!b)
		return finish(NULL, "new", err, bl_err_set(err, BIZLOCK_NOMEM, "out of memory"));
	b->serial = atomic_fetch_add(&serials, 1) + 1;
	b->pid = getpid();
	if (bl_config_init(&b->config, err) != BIZLOCK_OK) {
		free(b);
		return finish(NULL, "new", err, err->code);
	}
	pthread_mutex_init(&b->mu, NULL);
	bl_cond_init(&b->changed);
	*ret = b;
	return BIZLOCK_OK;
}

static int check_new(const bizlock *b, struct bl_err *err)
{
	int rc = check_process(b, err);

	if (rc == BIZLOCK_OK && b->state != BL_CLIENT_NEW)
		rc = bl_err_set(err, BIZLOCK_MISUSE, "the client is open already");
	return rc;
}

int bizlock_set(bizlock *b, const char *option, const char *value)
{
	struct bl_err *err = begin_error();
	int rc = check_new(b, err);

	if (rc == BIZLOCK_OK && !option)
		rc = bl_err_set(err, BIZLOCK_INVALID, "option is NULL");
	if (rc == BIZLOCK_OK)
		rc = bl_config_set(&b->config, option, value, BL_FROM_SET, err);
	return finish(b, "set", err, rc);
}

int bizlock_open(bizlock *b)
{
	struct bl_err *err = begin_error();
	int rc = check_new(b, err);

	if (rc == BIZLOCK_OK)
		rc = bl_client_open(b, err);
	if (rc == BIZLOCK_OK) {
		pthread_mutex_lock(&b->mu);
		b->state = BL_CLIENT_OPEN;
		pthread_mutex_unlock(&b->mu);
	}
	return finish(b, "open", err, rc);
}

int bizlock_migrate(bizlock *b)
{
	struct bl_err *err = begin_error();
	int rc = check_process(b, err);

	if (rc == BIZLOCK_OK)
		rc = bl_client_migrate(b, err);
	return finish(b, "migrate", err, rc);
}

void bizlock_close(bizlock *b)
{
	if (!b)
		return;
	if (bl_client_close(b))
		free(b);
}

/* What every call on a lock begins with: INVALID before anything is sent. */
static int begin_call(struct bl_call *call, bizlock *b, bizlock_key key, const char *owner,
                      int64_t wait_ms, struct bl_err *err)
{
	struct bl_key checked;
	struct bl_owner who;
	int rc = bl_key_make(&checked, key, err);

	if (rc == BIZLOCK_OK)
		rc = bl_owner_make(&who, owner, err);
	if (rc == BIZLOCK_OK)
		rc = enter(b, err);
	if (rc == BIZLOCK_OK)
		bl_call_begin(call, b, &checked, &who, wait_ms, err);
	return rc;
}

static int finish_call(struct bl_call *call, const char *what, int rc)
{
	if (rc != BIZLOCK_OK)
		bl_err_wrap(call->err, "%s/%s", call->key.type, call->key.id);
	finish(call->client, what, call->err, rc);
	leave(call->client);
	return rc;
}

int bizlock_acquire(bizlock *b, bizlock_key key, const bizlock_acquire_opts *opts,
                    bizlock_grant *ret)
{
	struct bl_err *err = begin_error();
	bizlock_acquire_opts o;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct bl_request request;
	struct bl_call call;
	int rc = bl_args_acquire(opts, ret, &o, err);

	if (rc == BIZLOCK_OK)
		rc = begin_call(&call, b, key, o.owner, o.wait_ms, err);
	if (rc != BIZLOCK_OK)
		return finish(b, "acquire", err, rc);
	request = (struct bl_request){.lease_ms = o.lease_ms ? o.lease_ms : b->config.lease_ms,
	                              .max_hold_ms =
	                                      o.max_hold_ms ? o.max_hold_ms : b->config.max_hold_ms,
	                              .flags = o.flags,
	                              .note = o.note,
	                              .once = o.wait_ms == 0};
	rc = bl_client_acquire(&call, &request, &grant);
	if (rc == BIZLOCK_OK && ret)
		bl_args_grant(&grant, ret);
	return finish_call(&call, "acquire", rc);
}

int bizlock_release(bizlock *b, bizlock_key key, const char *owner, uint32_t *ret_depth)
{
	struct bl_err *err = begin_error();
	struct bl_call call;
	uint32_t depth;
	int rc = begin_call(&call, b, key, owner, 0, err);

	if (rc != BIZLOCK_OK)
		return finish(b, "release", err, rc);
	rc = bl_client_release(&call, &depth);
	if (rc == BIZLOCK_OK && ret_depth)
		*ret_depth = depth;
	return finish_call(&call, "release", rc);
}

int bizlock_renew(bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms)
{
	struct bl_err *err = begin_error();
	struct bl_call call;
	int rc = bl_args_lease(lease_ms, err);

	if (rc == BIZLOCK_OK)
		rc = begin_call(&call, b, key, owner, 0, err);
	if (rc != BIZLOCK_OK)
		return finish(b, "renew", err, rc);
	return finish_call(&call, "renew", bl_client_renew(&call, lease_ms));
}

int bizlock_verify(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_err *err = begin_error();
	struct bl_call call;
	int rc = begin_call(&call, b, key, owner, 0, err);

	if (rc != BIZLOCK_OK)
		return finish(b, "verify", err, rc);
	return finish_call(&call, "verify", bl_client_verify(&call));
}

int64_t bizlock_left_ms(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_err *err = begin_error();
	struct bl_call call;
	int64_t left;

	if (begin_call(&call, b, key, owner, 0, err) != BIZLOCK_OK) {
		finish(b, "left_ms", err, err->code);
		return 0;
	}
	left = bl_client_left_ms(&call);
	leave(b);
	return left;
}

int bizlock_break(bizlock *b, bizlock_key key, uint64_t seen_fence)
{
	struct bl_err *err = begin_error();
	struct bl_call call;
	int rc = begin_call(&call, b, key, NULL, 0, err);

	if (rc != BIZLOCK_OK)
		return finish(b, "break", err, rc);
	return finish_call(&call, "break", bl_client_break(&call, seen_fence));
}

int bizlock_each(bizlock *b, const char *biz_type, int (*fn)(void *arg, const bizlock_info *),
                 void *arg)
{
	struct bl_err *err = begin_error(), mine;
	int rc = biz_type ? bl_type_check(biz_type, err) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK && !fn)
		rc = bl_err_set(err, BIZLOCK_INVALID, "fn is NULL");
	if (rc == BIZLOCK_OK)
		rc = enter(b, err);
	if (rc != BIZLOCK_OK)
		return finish(b, "each", err, rc);
	/* The callback may call the library, which would use the thread's scratch. */
	bl_err_clear(&mine);
	rc = bl_client_each(b, biz_type, fn, arg, &mine);
	finish(b, "each", &mine, rc);
	leave(b);
	return rc;
}

int bizlock_on_lost(bizlock *b, void (*fn)(void *arg, bizlock_key key, uint64_t fence), void *arg)
{
	struct bl_err *err = begin_error();
	int rc = check_process(b, err);

	if (rc == BIZLOCK_OK)
		bl_client_on_lost(b, fn, arg);
	return finish(b, "on_lost", err, rc);
}

void bizlock_interrupt(bizlock *b)
{
	if (b && b->pid == getpid())
		bl_client_interrupt(b);
}

const char *bizlock_errmsg(const bizlock *b)
{
	return last.client == (b ? b->serial : 0) ? last.err.msg : "";
}

const char *bizlock_version(void)
{
	return BIZLOCK_VERSION;
}
