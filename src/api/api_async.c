/* The public door of bizlock_async.h. */
#include "api/args.h"
#include "api/door.h"
#include "base/thread.h"
#include "client/hold/loss.h"
#include "client/request/op.h"
#include "client/request/ops.h"

/* What each function that starts a request is given. */
struct start {
	const char *what; /* its name */
	bizlock *b;
	const bizlock_key *keys;
	size_t n;
	bizlock_done *done;
	void *arg;
	uint64_t *ret;
};

/* Checks what requests of all kinds need, enters the client, and makes the request. */
static int make(const struct start *s, const char *owner, int64_t wait_ms, const char *note,
                struct bl_op **ret, struct bl_err *err)
{
	int rc = bl_args_given(s->done, "done", err);

	if (rc == BIZLOCK_OK && !owner)
		rc = bl_err_set(err, BIZLOCK_INVALID,
		                "owner is NULL: a thread cannot own what it does not wait for");
	if (rc == BIZLOCK_OK)
		rc = bl_args_keys(s->keys, s->n, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret = bl_op_new(s->n, note);
	if (!*ret)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	(*ret)->done = s->done;
	(*ret)->arg = s->arg;
	rc = bl_door_members((*ret)->members, s->b, s->keys, s->n, owner, wait_ms, err);
	if (rc != BIZLOCK_OK)
		bl_op_free(*ret);
	return rc;
}

/* rc: whether the request is ready to start. Leaves the client. */
static int start(const struct start *s, struct bl_op *op, struct bl_err *err, int rc)
{
	if (rc == BIZLOCK_OK)
		rc = bl_ops_start(s->b, op, s->ret, err);
	if (rc != BIZLOCK_OK)
		bl_op_free(op);
	return bl_door_out(s->b, s->what, err, rc);
}

static int start_acquire(const struct start *s, const bizlock_acquire_opts *opts, bool alone)
{
	struct bl_err *err = bl_door_error();
	struct bl_request request;
	bizlock_acquire_opts o;
	struct bl_op *op;
	int rc = bl_args_acquire(opts, NULL, &o, err);

	if (rc == BIZLOCK_OK && alone)
		rc = bl_args_alone(&o, "several keys cannot be acquired", err);
	if (rc == BIZLOCK_OK)
		rc = make(s, o.owner, o.wait_ms, o.note, &op, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(s->b, s->what, err, rc);
	request = bl_args_request(&o, &s->b->config);
	return start(s, op, err, bl_op_aim_acquire(op, &request));
}

int bizlock_acquire_start(bizlock *b, bizlock_key key, const bizlock_acquire_opts *opts,
                          bizlock_done *done, void *arg, uint64_t *ret)
{
	struct start s = {"acquire_start", b, &key, 1, done, arg, ret};

	return start_acquire(&s, opts, false);
}

int bizlock_acquire_all_start(bizlock *b, const bizlock_key *keys, size_t n,
                              const bizlock_acquire_opts *opts, bizlock_done *done, void *arg,
                              uint64_t *ret)
{
	struct start s = {"acquire_all_start", b, keys, n, done, arg, ret};

	return start_acquire(&s, opts, true);
}

static int start_release(const struct start *s, const char *owner)
{
	struct bl_err *err = bl_door_error();
	struct bl_op *op;
	int rc = make(s, owner, 0, NULL, &op, err);

	return rc == BIZLOCK_OK ? start(s, op, err, bl_op_aim_release(op))
	                        : bl_door_finish(s->b, s->what, err, rc);
}

int bizlock_release_start(bizlock *b, bizlock_key key, const char *owner, bizlock_done *done,
                          void *arg, uint64_t *ret)
{
	struct start s = {"release_start", b, &key, 1, done, arg, ret};

	return start_release(&s, owner);
}

int bizlock_release_all_start(bizlock *b, const bizlock_key *keys, size_t n, const char *owner,
                              bizlock_done *done, void *arg, uint64_t *ret)
{
	struct start s = {"release_all_start", b, keys, n, done, arg, ret};

	return start_release(&s, owner);
}

int bizlock_renew_start(bizlock *b, bizlock_key key, const char *owner, uint32_t lease_ms,
                        bizlock_done *done, void *arg, uint64_t *ret)
{
	struct start s = {"renew_start", b, &key, 1, done, arg, ret};
	struct bl_err *err = bl_door_error();
	struct bl_op *op;
	int rc = bl_args_lease(lease_ms, err);

	if (rc == BIZLOCK_OK)
		rc = make(&s, owner, 0, NULL, &op, err);
	return rc == BIZLOCK_OK ? start(&s, op, err, bl_op_aim_renew(op, lease_ms))
	                        : bl_door_finish(b, s.what, err, rc);
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
	static const char *const names[][2] = {[BL_OP_ACQUIRES] = {"acquire", "acquire_all"},
	                                       [BL_OP_RELEASES] = {"release", "release_all"},
	                                       [BL_OP_RENEWS] = {"renew"}};

	bl_err_set(err, op->rc, "%s", op->why ? op->why : bizlock_strerror(op->rc));
	err->native = op->native;
	bl_door_finish(b, names[op->kind][op->n > 1], err, op->rc);
}

void bl_door_answer(bizlock *b, struct bl_op *op)
{
	bool granted = op->rc == BIZLOCK_OK && op->kind == BL_OP_ACQUIRES;
	const bizlock_grant *grants[BL_TAKE_MAX];
	struct bl_err mine = {.code = BIZLOCK_OK};
	bizlock_key keys[BL_TAKE_MAX];

	if (op->rc != BIZLOCK_OK)
		tell_error(b, op, &mine);
	for (size_t i = 0; i < op->n; i++) {
		const struct bl_member *m = &op->members[i];

		keys[m->index] = (bizlock_key){m->call.key.type, m->call.key.id};
		grants[i] = &op->grants[i];
	}
	op->done(op->arg, &(bizlock_result){.size = sizeof(bizlock_result),
	                                    .request = op->number,
	                                    .rc = op->rc,
	                                    .server_error = mine.native,
	                                    .message = mine.msg,
	                                    .key = keys[0],
	                                    .owner = op->members->call.owner.name,
	                                    .grant = granted ? grants[0] : NULL,
	                                    .count = op->n,
	                                    .keys = keys,
	                                    .grants = granted ? grants : NULL});
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
