/* The thread of requests and a sleeper pass a request to each other. While it SLEEPS, it is the
 * sleeper's, as it is the other thread's while it RUNS: whoever cancels or wakes it only leaves a
 * note, and a cancel wakes the connection, too. Errors and rows go into the sleeper's own, because
 * those of the thread of requests are in use. */
#include "client/lock/op_bells.h"

#include <stdlib.h>

#include "client/lock/sleep.h"

struct bl_op_sleeper {
	struct bl_worker worker;
	struct bizlock *client;
	struct bizlock_op *op; /* NULL: none */
	bl_time until;
	struct bl_row row;
	struct bl_err err;
};

/* How the request goes on: BL_PARKED, BL_AGAIN, or it has ended. What a server or a connection has
 * refused is met again by the thread of requests, which knows what to do then. */
static int sleep_once(struct bl_op_sleeper *s)
{
	struct bizlock_op *op = s->op;
	int rc;

	op->m.call.err = &s->err;
	op->contest.row = &s->row;
	bl_err_clear(&s->err);
	s->client->ops.asleep_at_bells++;
	rc = bl_contest_sleep_at_bell(&op->contest, s->until);
	s->client->ops.asleep_at_bells--;
	op->until = op->contest.parked_until;
	return rc == BIZLOCK_CONN || rc == BIZLOCK_DB || rc == BIZLOCK_CANCELLED ? BL_AGAIN : rc;
}

static void *sleep_always(void *arg)
{
	struct bl_op_sleeper *s = arg;
	struct bizlock *b = s->client;

	bl_lock(b);
	while (!s->worker.stop) {
		struct bizlock_op *op = s->op;

		s->worker.at = BL_NEVER;
		if (op && op->state == BL_OP_SLEEPS) {
			int rc = sleep_once(s);

			bl_op_bells_leave(op);
			bl_op_settle(op, rc);
		} else {
			bl_worker_sleep(&s->worker, &b->mu);
		}
	}
	bl_unlock(b);
	return NULL;
}

/* One that has nothing to do, and its thread. */
static struct bl_op_sleeper *find_idle(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct bl_op_sleeper *s;
	struct bl_err ignored;

	if (!ops->sleepers)
		ops->sleepers = calloc(b->pool.size, sizeof(*ops->sleepers));
	for (unsigned i = 0; ops->sleepers && i < b->pool.size; i++) {
		s = &ops->sleepers[i];
		if (s->op)
			continue;
		s->client = b;
		if (s->worker.running ||
		    bl_worker_start(&s->worker, sleep_always, s, &ignored) == BIZLOCK_OK)
			return s;
		return NULL;
	}
	return NULL;
}

bool bl_op_bells_take(struct bl_contest *c, bl_time until)
{
	struct bizlock *b = c->client;
	struct bl_op_sleeper *s = NULL;

	if (bl_yields_is_hot(&b->yields, &c->call->key) && !b->ops.worker.stop &&
	    bl_pool_has_room_at_bells(&b->pool, true))
		s = find_idle(b);
	if (!s)
		return false;
	s->op = c->op;
	s->row = *c->row;
	s->until = until;
	c->op->sleeper = s;
	return true;
}

void bl_op_bells_begin(struct bizlock_op *op)
{
	op->state = BL_OP_SLEEPS;
	bl_worker_by(&op->sleeper->worker, 0);
}

void bl_op_bells_leave(struct bizlock_op *op)
{
	if (op->sleeper)
		op->sleeper->op = NULL;
	op->sleeper = NULL;
}

void bl_op_bells_cancel(struct bizlock_op *op)
{
	if (op->state != BL_OP_SLEEPS)
		return;
	op->m.call.wakes = atomic_load(&op->m.call.client->wakes) - 1; /* as in bl_op_step() */
	if (op->contest.conn)
		bl_conn_wake(op->contest.conn);
}

void bl_op_bells_stop(struct bizlock *b)
{
	for (unsigned i = 0; b->ops.sleepers && i < b->pool.size; i++)
		bl_worker_stop(&b->ops.sleepers[i].worker, &b->mu);
}

void bl_op_bells_forget(struct bizlock *b)
{
	free(b->ops.sleepers);
	b->ops.sleepers = NULL;
}
