/* The thread that runs requests. It takes those that are ready, as far as each goes without a wait;
 * what wants to go to the server together goes in batches. The others are parked: a time wakes
 * them, or who hands a lock over, or a watcher. */
#include "client/lock/ops.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/lock/op.h"
#include "client/lock/op_bells.h"
#include "store/batch.h"

/* No signal comes with an interrupt while the thread is kept waiting by a server. */
#define TICK_NS (1000 * BL_NS_PER_MS)

void bl_ops_init(struct bl_ops *ops)
{
	*ops = (struct bl_ops){.wake_fd = -1};
	ops->ready_last = &ops->ready;
	ops->done_last = &ops->done;
}

void bl_ops_interrupt(struct bl_ops *ops)
{
	int fd = atomic_load(&ops->wake_fd), kept = errno;

	if (fd >= 0)
		eventfd_write(fd, 1);
	errno = kept;
}

/* ---- those that wait for a time, in order: a heap ------------------------------------------- */

/* Room for n of them. false: no memory. */
static bool reserve_timed(struct bl_ops *ops, size_t n)
{
	size_t size = ops->timed_size ? ops->timed_size : 64;
	struct bizlock_op **timed;

	if (n <= ops->timed_size)
		return true;
	while (size < n)
		size *= 2;
	timed = realloc(ops->timed, size * sizeof(struct bizlock_op *));
	if (!timed)
		return false;
	ops->timed = timed;
	ops->timed_size = size;
	return true;
}

/* Places are counted from 1, so that those below i are 2i and 2i + 1. */
static void set_place(struct bl_ops *ops, size_t at, struct bizlock_op *op)
{
	ops->timed[at - 1] = op;
	op->at = at;
}

static void sift_up(struct bl_ops *ops, size_t at, struct bizlock_op *op)
{
	while (at > 1 && ops->timed[at / 2 - 1]->until > op->until) {
		set_place(ops, at, ops->timed[at / 2 - 1]);
		at /= 2;
	}
	set_place(ops, at, op);
}

static void sift_down(struct bl_ops *ops, size_t at, struct bizlock_op *op)
{
	for (size_t below; (below = 2 * at) <= ops->timed_count; at = below) {
		if (below < ops->timed_count &&
		    ops->timed[below]->until < ops->timed[below - 1]->until)
			below++;
		if (ops->timed[below - 1]->until >= op->until)
			break;
		set_place(ops, at, ops->timed[below - 1]);
	}
	set_place(ops, at, op);
}

/* For op->until. */
static void add_timed(struct bl_ops *ops, struct bizlock_op *op)
{
	sift_up(ops, ++ops->timed_count, op);
}

/* If it is there. */
static void remove_timed(struct bl_ops *ops, struct bizlock_op *op)
{
	size_t at = op->at;
	struct bizlock_op *last;

	if (at == 0)
		return;
	op->at = 0;
	last = ops->timed[--ops->timed_count];
	if (last == op)
		return;
	sift_down(ops, at, last);
	sift_up(ops, last->at, last);
}

static bl_time first_time(const struct bl_ops *ops)
{
	return ops->timed_count ? ops->timed[0]->until : BL_NEVER;
}

/* Takes out the first one whose time has come. NULL: none. */
static struct bizlock_op *take_due(struct bl_ops *ops)
{
	struct bizlock_op *op = ops->timed_count ? ops->timed[0] : NULL;

	if (!op || !bl_passed(op->until))
		return NULL;
	remove_timed(ops, op);
	return op;
}

/* ---- their lines ---------------------------------------------------------------------------- */

static void make_ready(struct bl_ops *ops, struct bizlock_op *op)
{
	remove_timed(ops, op);
	op->state = BL_OP_READY;
	op->next = NULL;
	*ops->ready_last = op;
	ops->ready_last = &op->next;
	if (!ops->asleep)
		return;
	ops->asleep = false;
	bl_ops_interrupt(ops);
}

static struct bizlock_op *take_ready(struct bl_ops *ops)
{
	struct bizlock_op *op = ops->ready;

	if (!op)
		return NULL;
	ops->ready = op->next;
	if (!ops->ready)
		ops->ready_last = &ops->ready;
	op->state = BL_OP_RUNS;
	op->again = false;
	return op;
}

void bl_op_wake(struct bizlock_op *op)
{
	if (op->state == BL_OP_PARKED)
		make_ready(&op->m.call.client->ops, op);
	else
		op->again = true;
}

static void park(struct bl_ops *ops, struct bizlock_op *op)
{
	op->state = BL_OP_PARKED;
	op->m.call.err = &ops->err;
	op->contest.row = &ops->row;
	if (op->again)
		bl_op_bells_leave(op);
	if (op->again)
		make_ready(ops, op);
	else if (op->sleeper)
		bl_op_bells_begin(op);
	else if (op->until != BL_NEVER)
		add_timed(ops, op);
}

static void add_to_all(struct bl_ops *ops, struct bizlock_op *op)
{
	op->after = ops->all;
	if (ops->all)
		ops->all->before = op;
	ops->all = op;
	ops->count++;
}

static void remove_from_all(struct bl_ops *ops, struct bizlock_op *op)
{
	if (op->before)
		op->before->after = op->after;
	else
		ops->all = op->after;
	if (op->after)
		op->after->before = op->before;
	ops->count--;
}

static void make_done(struct bizlock *b, struct bizlock_op *op)
{
	struct bl_ops *ops = &b->ops;

	remove_from_all(ops, op);
	op->state = BL_OP_DONE;
	op->next = NULL;
	*ops->done_last = op;
	ops->done_last = &op->next;
	ops->done_count++;
	bl_loss_ask_dispatch(b);
	if (ops->worker.stop) /* the thread of requests waits until all are done */
		bl_ops_interrupt(ops);
}

/* ---- the thread ----------------------------------------------------------------------------- */

void bl_op_settle(struct bizlock_op *op, int rc)
{
	struct bizlock *b = op->m.call.client;

	op->again |= rc == BL_AGAIN;
	if (rc == BL_PARKED || rc == BL_AGAIN) {
		park(&b->ops, op);
	} else {
		bl_op_end(op, rc);
		make_done(b, op);
	}
}

static void tell_interrupts(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	unsigned wakes = atomic_load(&b->wakes);

	if (wakes == ops->wakes)
		return;
	ops->wakes = wakes;
	for (struct bizlock_op *op = ops->all; op; op = op->after)
		bl_op_wake(op);
}

static void run_ready(struct bizlock *b)
{
	struct bizlock_op *batch[BL_BATCH_MAX], *op;
	size_t n = 0;

	while (n < BL_BATCH_MAX && (op = take_ready(&b->ops)) != NULL) {
		int rc = bl_op_step(op);

		if (rc == BL_AGAIN)
			batch[n++] = op;
		else
			bl_op_settle(op, rc);
	}
	bl_op_batch(b, batch, n, &b->ops.err, bl_op_settle);
}

static void rest(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct pollfd fd = {.fd = ops->wake_fd, .events = POLLIN};
	int64_t ms = bl_left_ms(bl_earlier(first_time(ops), bl_now() + TICK_NS));
	eventfd_t ignored;

	ops->asleep = true;
	bl_unlock(b);
	poll(&fd, 1, (int)ms);
	bl_lock(b);
	ops->asleep = false;
	if (fd.revents)
		eventfd_read(ops->wake_fd, &ignored);
}

static void *run_always(void *arg)
{
	struct bizlock *b = arg;
	struct bl_ops *ops = &b->ops;
	struct bizlock_op *op;

	bl_lock(b);
	while (!ops->worker.stop || ops->count > 0) {
		tell_interrupts(b);
		while ((op = take_due(ops)) != NULL)
			make_ready(ops, op);
		if (!ops->ready) {
			rest(b);
			continue;
		}
		ops->worker.at_work = true;
		run_ready(b);
		ops->worker.at_work = false;
	}
	bl_unlock(b);
	return NULL;
}

static int start_thread(struct bizlock *b, struct bl_err *err)
{
	struct bl_ops *ops = &b->ops;

	if (ops->worker.running)
		return BIZLOCK_OK;
	if (ops->wake_fd < 0)
		ops->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ops->wake_fd < 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "no file descriptor is left");
	return bl_worker_start(&ops->worker, run_always, b, err);
}

/* ---- those who start them, and those who dispatch ------------------------------------------- */

int bl_ops_start(struct bizlock *b, struct bizlock_op *op, struct bizlock_op **ret,
                 struct bl_err *err)
{
	struct bl_ops *ops = &b->ops;
	int rc;

	bl_lock(b);
	rc = reserve_timed(ops, ops->count + 1) ? start_thread(b, err)
	                                        : bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (rc == BIZLOCK_OK) {
		op->request.note = op->request.note ? op->note : NULL;
		add_to_all(ops, op);
		make_ready(ops, op);
		if (ret)
			*ret = op;
	}
	bl_unlock(b);
	return rc;
}

void bl_ops_cancel(struct bizlock_op *op)
{
	struct bizlock *b = op->m.call.client;

	bl_lock(b);
	if (op->state != BL_OP_DONE) {
		op->cancelled = true;
		bl_op_wake(op);
		bl_op_bells_cancel(op);
	}
	bl_unlock(b);
}

int bl_ops_fd(struct bizlock *b)
{
	int fd;

	bl_lock(b);
	fd = bl_loss_fd(b);
	if (b->ops.done)
		bl_loss_ask_dispatch(b);
	bl_unlock(b);
	return fd;
}

/* What becomes done from here on makes the descriptor readable again. */
unsigned bl_ops_dispatch(struct bizlock *b)
{
	unsigned n;

	bl_lock(b);
	bl_loss_answer_dispatch(b);
	n = b->ops.done_count;
	bl_unlock(b);
	return n;
}

void bl_ops_dispatched(struct bizlock *b)
{
	bl_lock(b);
	if (b->ops.done)
		bl_loss_ask_dispatch(b);
	bl_unlock(b);
}

struct bizlock_op *bl_ops_take_done(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct bizlock_op *op;

	bl_lock(b);
	op = ops->done;
	if (op) {
		ops->done = op->next;
		if (!ops->done)
			ops->done_last = &ops->done;
		ops->done_count--;
	}
	bl_unlock(b);
	return op;
}

/* What it was granted at first; or NULL. */
static struct bl_hold *hold_of(const struct bizlock *b, const struct bizlock_op *op)
{
	struct bl_hold *h = bl_held_find(&b->held, &op->m.call.key, &op->m.call.owner);
	bool granted = !op->releases && op->rc == BIZLOCK_OK && op->grant.depth == 1;

	return granted && h && h->fence == op->grant.fence ? h : NULL;
}

/* A program that heard of the loss first would work under the lock. */
void bl_ops_told(struct bizlock *b, const struct bizlock_op *op)
{
	struct bl_hold *h;

	bl_lock(b);
	h = hold_of(b, op);
	if (h && h->promised && h->state == BL_HOLD_LOST)
		bl_loss_note(b, h);
	if (h)
		h->promised = false;
	bl_unlock(b);
}

/* ---- their end ------------------------------------------------------------------------------ */

/* It was granted, but nobody was told: so nobody works under the lock. */
static void withdraw(struct bizlock *b, struct bizlock_op *op)
{
	struct bl_hold *h = hold_of(b, op);

	if (h && h->state == BL_HOLD_HELD && !h->busy)
		bl_hold_orphan(b, h, true);
	if (!op->releases && op->rc == BIZLOCK_OK)
		op->rc = BIZLOCK_CANCELLED;
}

void bl_ops_stop(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;

	bl_lock(b);
	ops->worker.stop = true;
	for (struct bizlock_op *op = ops->all; op; op = op->after)
		bl_op_wake(op);
	bl_ops_interrupt(ops);
	bl_unlock(b);
	bl_worker_stop(&ops->worker, &b->mu);
	bl_op_bells_stop(b);
	bl_lock(b);
	for (struct bizlock_op *op = ops->done; op; op = op->next)
		withdraw(b, op);
	bl_unlock(b);
}

void bl_ops_forget(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct bizlock_op *op;

	for (op = ops->all; op; op = op->after)
		op->state = BL_OP_RUNS; /* and is not woken by another's end */
	while ((op = ops->all) != NULL) {
		remove_from_all(ops, op);
		bl_contest_forget(&op->contest);
		bl_op_free(op);
	}
	while ((op = ops->done) != NULL) {
		ops->done = op->next;
		bl_op_free(op);
	}
	if (ops->wake_fd >= 0)
		close(ops->wake_fd);
	free(ops->timed);
	bl_op_bells_forget(b);
	bl_ops_init(ops);
}
