/* The public door of bizlock_async.h. */
#include "api/args.h"
#include "api/door.h"
#include "base/thread.h"
#include "client/hold/loss.h"
#include "client/request/op.h"
#include "client/request/ops.h"

/* Checks that requests of all kinds need. */
static int check_start(const bizlock *b, bizlock_key key, const char *owner, bizlock_done *done,
                       struct bl_key *ret_key, struct bl_owner *ret_owner, struct bl_err *err)
{
	if (!done)
		return bl_args_given(false, "done", err);
	if (!owner)
		return bl_err_set(err, BIZLOCK_INVALID,
		                  "owner is NULL: a thread cannot own what it does not wait for");
	return bl_door_name(b, key, owner, ret_key, ret_owner, err);
}

/* Starts the request, and leaves the client. op: NULL if there was no memory; freed after an
 * error. */
static int start(bizlock *b, struct bl_op *op, uint64_t *ret, const char *what, struct bl_err *err)
{
	int rc = op ? bl_ops_start(b, op, ret, err)
	            : bl_err_set(err, BIZLOCK_NOMEM, "out of memory");

	if (rc != BIZLOCK_OK)
		bl_op_free(op);
	return bl_door_out(b, what, err, rc);
}

int bizlock_acquire_start(bizlock *b, bizlock_key key, const bizlock_acquire_opts *opts,
                          bizlock_done *done, void *arg, uint64_t *ret)
{
	struct bl_err *err = bl_door_error();
	bizlock_acquire_opts o;
	struct bl_op *op;
	struct bl_owner who;
	struct bl_key checked;
	int rc = bl_args_acquire(opts, NULL, &o, err);

	if (rc == BIZLOCK_OK)
		rc = check_start(b, key, o.owner, done, &checked, &who, err);
	if (rc == BIZLOCK_OK)
		rc = bl_key_check_taken(&checked, err);
	rc = bl_door_in(b, "acquire_start", err, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	op = bl_op_new(b, &checked, &who, o.wait_ms, o.note);
	if (op) {
		struct bl_request request = bl_args_request(&o, &b->config);

		bl_op_aim(op, &request);
		op->done = done;
		op->arg = arg;
	}
	return start(b, op, ret, "acquire_start", err);
}

/* A release, or a renewal. */
static int start_with_hold(bizlock *b, bizlock_key key, const char *owner, enum bl_op_kind kind,
                           uint32_t lease_ms, bizlock_done *done, void *arg, uint64_t *ret)
{
	const char *what = kind == BL_OP_RENEWS ? "renew_start" : "release_start";
	struct bl_err *err = bl_door_error();
	struct bl_op *op;
	struct bl_owner who;
	struct bl_key checked;
	int rc = bl_args_lease(lease_ms, err);

	if (rc == BIZLOCK_OK)
		rc = check_start(b, key, owner, done, &checked, &who, err);
	rc = bl_door_in(b, what, err, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	op = bl_op_new(b, &checked, &who, 0, NULL);
	if (op) {
		op->kind = kind;
		op->request.lease_ms = lease_ms;
		op->patience = op->m.call.io_deadline;
		op->done = done;
		op->arg = arg;
	}
	return start(b, op, ret, what, err);
}

int bizlock_release_start(bizlock *b, bizlock_key key, const char *owner, bizlock_done *done,
                          void *arg, uint64_t *ret)
{
	return start_with_hold(b, key, owner, BL_OP_RELEASES, 0, done, arg, ret);
}

int bizlock_renew_start(bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms,
                        bizlock_done *done, void *arg, uint64_t *ret)
{
	return start_with_hold(b, key, owner, BL_OP_RENEWS, lease_ms, done, arg, ret);
}

int bizlock_cancel(bizlock *b, uint64_t request)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_in(b, "cancel", err, BIZLOCK_OK);

	return rc == BIZLOCK_OK ? bl_door_out(b, "cancel", err, bl_ops_cancel(b, request, err))
	                        : rc;
}

int bizlock_fd(bizlock *b)
{
	struct bl_err *err = bl_door_error();
	int fd, rc = bl_door_in(b, "fd", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return -1;
	fd = bl_ops_fd(b);
	if (fd < 0)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "no file descriptor is left");
	bl_door_out(b, "fd", err, rc);
	return fd;
}

/* Says why the request failed: in err, and in the calling thread's error for bizlock_errmsg(). */
static void tell_error(bizlock *b, const struct bl_op *op, struct bl_err *err)
{
	static const char *const names[] = {[BL_OP_ACQUIRES] = "acquire",
	                                    [BL_OP_RELEASES] = "release",
	                                    [BL_OP_RENEWS] = "renew"};
	const struct bl_key *key = &op->m.call.key;

	bl_err_set(err, op->rc, "%s", op->why ? op->why : bizlock_strerror(op->rc));
	err->native = op->native;
	bl_err_wrap(err, "%s/%s", key->type, key->id);
	bl_door_finish(b, names[op->kind], err, op->rc);
}

void bl_door_answer(bizlock *b, struct bl_op *op)
{
	const struct bl_key *key = &op->m.call.key;
	bool granted = op->rc == BIZLOCK_OK && op->kind == BL_OP_ACQUIRES;
	struct bl_err mine = {.code = BIZLOCK_OK};

	if (op->rc != BIZLOCK_OK)
		tell_error(b, op, &mine);
	op->done(op->arg, &(bizlock_result){.size = sizeof(bizlock_result),
	                                    .request = op->number,
	                                    .rc = op->rc,
	                                    .server_error = mine.native,
	                                    .message = mine.msg,
	                                    .key = {key->type, key->id},
	                                    .owner = op->m.call.owner.name,
	                                    .grant = granted ? &op->grant : NULL});
	bl_ops_told(b, op);
	bl_op_free(op);
}

int bizlock_dispatch(bizlock *b, unsigned *ret_calls)
{
	struct bl_op *op;
	size_t n, calls = 0;
	int rc = bl_door_in(b, "dispatch", bl_door_error(), BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	for (n = bl_ops_dispatch(b); calls < n && (op = bl_ops_take_done(b)) != NULL; calls++)
		bl_door_answer(b, op);
	calls += bl_loss_dispatch(b);
	bl_ops_dispatched(b);
	bl_door_leave(b);
	if (ret_calls)
		*ret_calls = (unsigned)calls;
	return rc;
}
