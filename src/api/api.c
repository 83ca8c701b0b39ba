/* The public door: argument checks, struct sizes, the thread's last error. */
#include <string.h>

#include "api/args.h"
#include "api/door.h"
#include "base/thread.h"
#include "client/admin/admin.h"
#include "client/client.h"
#include "client/contest/reentry.h"
#include "client/giveback/release.h"
#include "client/request/acquire.h"
#include "client/request/renew.h"
#include "client/request/verify.h"
#include "client/sources.h"

int bizlock_new(bizlock **ret)
{
	struct bl_err *err = bl_door_error();
	int rc = ret ? bl_client_new(ret, err) : bl_args_given(false, "ret", err);

	return bl_door_finish(NULL, "new", err, rc);
}

static int set(bizlock *b, const char *option, const char *value, struct bl_err *err)
{
	int rc;

	if (!option)
		return bl_args_given(false, "option", err);
	bl_lock(b);
	rc = bl_door_new(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_config_set(&b->set, option, value, BL_FROM_SET, err);
	bl_unlock(b);
	return rc;
}

int bizlock_set(bizlock *b, const char *option, const char *value)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_process(b, err);

	if (rc == BIZLOCK_OK)
		rc = set(b, option, value, err);
	if (rc == BIZLOCK_MISUSE && option && strcmp(option, "password") == 0 &&
	    bl_door_enter(b, err) == BIZLOCK_OK) {
		bl_err_clear(err);
		return bl_door_out(b, "set", err, bl_client_password(b, value, err));
	}
	return bl_door_finish(b, "set", err, rc);
}

int bizlock_open(bizlock *b)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_open(b, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "open", err, rc);
	rc = bl_client_open(b, err);
	rc = bl_door_finish(b, "open", err, rc);
	bl_door_opened(b, rc == BIZLOCK_OK);
	return rc;
}

int bizlock_migrate(bizlock *b)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_visit(b, "migrate", err, BIZLOCK_OK);

	return rc == BIZLOCK_OK ? bl_door_out(b, "migrate", err, bl_client_migrate(b, err)) : rc;
}

int bizlock_close(bizlock *b)
{
	bool all_released;

	bl_door_shield();
	all_released = !b || bl_client_close(b, bl_door_answer);
	bl_door_unshield();
	return all_released ? BIZLOCK_OK : BIZLOCK_UNKNOWN;
}

static int acquire(bizlock *b, bizlock_key key, const bizlock_acquire_opts *opts,
                   struct bl_err *err, bizlock_grant *ret)
{
	struct bl_request request;
	struct bl_member m = {.hold = NULL};
	struct bl_owner who;
	struct bl_key checked;
	int rc = bl_door_name(b, key, opts->owner, &checked, &who, err);

	if (rc == BIZLOCK_OK)
		rc = bl_key_check_taken(&checked, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "acquire", err, rc);
	rc = bl_door_begin(&m.call, b, &checked, &who, opts->wait_ms, "acquire", err);
	if (rc != BIZLOCK_OK)
		return rc;
	request = bl_args_request(opts, &b->config);
	return bl_door_called(&m.call, "acquire", bl_client_acquire(&m, 1, &request, ret));
}

int bizlock_acquire(bizlock *b, bizlock_key key, const bizlock_acquire_opts *opts,
                    bizlock_grant *ret)
{
	struct bl_err *err = bl_door_error();
	bl_time begun = bl_now();
	bizlock_acquire_opts o;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int rc = bl_args_acquire(opts, ret, &o, err);

	if (rc == BIZLOCK_OK)
		rc = bl_door_process(b, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "acquire", err, rc);
	if (o.min_hold_ms || o.max_hold_ms ||
	    !bl_client_deeper(b, key, o.owner, o.lease_ms, o.flags, begun, &grant))
		rc = acquire(b, key, &o, err, &grant);
	if (rc == BIZLOCK_OK && ret)
		bl_args_give(ret, &grant, sizeof(grant));
	return rc;
}

static int release(bizlock *b, bizlock_key key, const char *owner, uint32_t *ret_depth)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "release");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "release", bl_client_release(&call, ret_depth));
}

int bizlock_release(bizlock *b, bizlock_key key, const char *owner, uint32_t *ret_depth)
{
	struct bl_err *err = bl_door_error();
	bl_time begun = bl_now();
	uint32_t depth;
	int rc = bl_door_process(b, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "release", err, rc);
	if (!bl_client_shallower(b, key, owner, begun, &depth))
		rc = release(b, key, owner, &depth);
	if (rc == BIZLOCK_OK && ret_depth)
		*ret_depth = depth;
	return rc;
}

int bizlock_renew(bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms)
{
	struct bl_err *err = bl_door_error();
	struct bl_call call;
	int rc = bl_args_lease(lease_ms, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "renew", err, rc);
	rc = bl_door_call(&call, b, key, owner, "renew");
	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "renew", bl_client_renew(&call, lease_ms));
}

int bizlock_downgrade(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "downgrade");

	return rc == BIZLOCK_OK ? bl_door_called(&call, "downgrade", bl_client_downgrade(&call))
	                        : rc;
}

int bizlock_verify(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "verify");

	return rc == BIZLOCK_OK ? bl_door_called(&call, "verify", bl_client_verify(&call)) : rc;
}

int bizlock_verify_fence(bizlock *b, bizlock_key key, uint64_t fence)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, NULL, "verify_fence");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "verify_fence", bl_client_verify_fence(&call, fence));
}

int bizlock_held(bizlock *b, bizlock_key key, const char *owner, bizlock_grant *ret)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "held");

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_args_grant(ret, call.err);
	if (rc == BIZLOCK_OK)
		rc = bl_client_held(&call, &grant);
	if (rc == BIZLOCK_OK)
		bl_args_give(ret, &grant, sizeof(grant));
	return bl_door_called(&call, "held", rc);
}

int bizlock_last_renewal(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "last_renewal");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "last_renewal", bl_client_last_renewal(&call));
}

int64_t bizlock_left_ms(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_call call;
	int64_t left;

	if (bl_door_call(&call, b, key, owner, "left_ms") != BIZLOCK_OK)
		return 0;
	left = bl_client_left_ms(&call);
	bl_door_leave(b);
	return left;
}

int bizlock_life_fd(bizlock *b)
{
	int fd;

	if (bl_door_in(b, "life_fd", bl_door_error(), BIZLOCK_OK) != BIZLOCK_OK)
		return -1;
	fd = bl_life_descriptor(&b->life);
	bl_door_leave(b);
	return fd;
}

int bizlock_break(bizlock *b, bizlock_key key, uint64_t seen_fence)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, NULL, "break");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "break", bl_client_break(&call, seen_fence));
}

int bizlock_each(bizlock *b, const char *biz_type, int (*fn)(void *arg, const bizlock_info *),
                 void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	int rc = biz_type ? bl_type_check(biz_type, &mine) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK)
		rc = bl_args_given(fn, "fn", &mine);
	rc = bl_door_in(b, "each", &mine, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "each", &mine, bl_client_look(b, NULL, biz_type, fn, arg, &mine));
}

int bizlock_look(bizlock *b, bizlock_key key, int (*fn)(void *arg, const bizlock_info *), void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	struct bl_key checked;
	int rc = bl_key_make(&checked, key, &mine);

	if (rc == BIZLOCK_OK)
		rc = bl_args_given(fn, "fn", &mine);
	rc = bl_door_in(b, "look", &mine, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "look", &mine, bl_client_look(b, &checked, NULL, fn, arg, &mine));
}

static int tell_losses_to(bizlock *b, const char *what, struct bl_listener listener)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_visit(b, what, err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_client_on_lost(b, listener);
	return bl_door_out(b, what, err, rc);
}

int bizlock_on_lost(bizlock *b, void (*fn)(void *arg, bizlock_key key, uint64_t fence), void *arg)
{
	return tell_losses_to(b, "on_lost", (struct bl_listener){.lost = fn, .arg = arg});
}

int bizlock_on_loss(bizlock *b, void (*fn)(void *arg, const bizlock_loss *loss), void *arg)
{
	return tell_losses_to(b, "on_loss", (struct bl_listener){.loss = fn, .arg = arg});
}

int bizlock_cancel_wait(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_err *err = bl_door_error();
	struct bl_call call;
	int rc;

	if (!owner)
		return bl_door_finish(
		        b, "cancel_wait", err,
		        bl_err_set(err, BIZLOCK_INVALID,
		                   "owner is NULL: the calling thread does not wait"));
	rc = bl_door_call(&call, b, key, owner, "cancel_wait");
	return rc == BIZLOCK_OK ? bl_door_called(&call, "cancel_wait", bl_client_cancel_wait(&call))
	                        : rc;
}

void bizlock_interrupt(bizlock *b)
{
	int before;

	/* Not bl_door_shield(): the first use of a thread-local variable may allocate memory, which
	 * a signal handler must not do. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	if (b && bl_process_is(b->stamp))
		bl_client_interrupt(b);
	pthread_setcancelstate(before, NULL);
}

void bizlock_stop(bizlock *b, int on)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before); /* as above */
	if (b && bl_process_is(b->stamp))
		bl_client_stop(b, on);
	pthread_setcancelstate(before, NULL);
}

const char *bizlock_version(void)
{
	return BIZLOCK_VERSION;
}
