/* The threads that run requests. One thread takes each request that is ready as far as it goes
 * without a wait; requests that may go to the server together go in batches. Requests that wait are
 * parked: a time, a hand-off or a watcher wakes them.
 *
 * A statement may take as long as a network or a locked table does. So while the first thread is at
 * work, and there are other requests, a second thread stands by. When all threads at work have been
 * so for BL_OP_STUCK_NS, it takes the requests that are ready, and the next thread stands by.
 *
 * The server gives a doorbell to connections in the order in which they came, and requests that are
 * watched come behind them all. Beside processes that sleep at the doorbell, a request would get a
 * hot key (conn/yields.h) once in many seconds. So a thread sleeps at the doorbell for such a
 * request, and goes for the row when it rings. A request that RUNS or SLEEPS belongs to its
 * thread. */
#include "client/request/ops.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client/contest/sleep.h"
#include "client/request/op.h"
#include "client/request/op_number.h"
#include "client/request/op_times.h"
#include "store/batch/batch.h"

/* A thread that has had nothing to do for this long ends, but for the first one. */
#define IDLE_NS (1000 * BL_NS_PER_MS)

/* The first worker looks at least this often, whatever wakes it. */
#define TICK_NS (1000 * BL_NS_PER_MS)

void bl_ops_init(struct bl_ops *ops)
{
	*ops = (struct bl_ops){.wake_fd = -1};
}

void bl_ops_interrupt(struct bl_ops *ops)
{
	int fd = atomic_load(&ops->wake_fd), kept = errno;

	if (fd >= 0)
		eventfd_write(fd, 1);
	errno = kept;
}

/* ---- their lines ---------------------------------------------------------------------------- */

static void wake_first(struct bl_ops *ops)
{
	if (ops->asleep)
		bl_ops_interrupt(ops);
	ops->asleep = false;
}

static void make_ready(struct bl_ops *ops, struct bl_op *op)
{
	struct bl_list *line = op->cancelled ? &ops->cancelled : &ops->ready;

	bl_times_remove(ops, op);
	op->state = BL_OP_READY;
	bl_list_add(line, &op->line);
	if (line->count == 1) /* else the first worker knows already */
		wake_first(ops);
}

static struct bl_op *first_in(const struct bl_list *line)
{
	return BL_LISTED(line->first, struct bl_op, line);
}

static struct bl_op *take_first(struct bl_list *line)
{
	struct bl_op *op = first_in(line);

	if (op)
		bl_list_remove(line, &op->line);
	return op;
}

static struct bl_op *take_ready(struct bl_list *line, struct bl_op_scratch *scratch)
{
	struct bl_op *op = take_first(line);

	if (!op)
		return NULL;
	op->state = BL_OP_RUNS;
	op->again = false;
	bl_op_use(op, scratch);
	return op;
}

void bl_op_wake(struct bl_op *op)
{
	if (op->state == BL_OP_PARKED)
		make_ready(&op->members->call.client->ops, op);
	else
		op->again = true;
}

static void *run_always(void *arg);

/* An idle worker, never the first. with_thread: its thread runs; else it has none. NULL: none. */
static struct bl_ops_worker *find_idle(struct bl_ops *ops, bool with_thread)
{
	for (struct bl_ops_worker *w = ops->workers + 1; w < ops->workers + ops->size; w++)
		if (!w->since && !w->op && (w->worker.running && !w->worker.ends) == with_thread)
			return w;
	return NULL;
}

/* NULL: no thread can be started. */
static struct bl_ops_worker *have_idle(struct bl_ops *ops)
{
	struct bl_ops_worker *w = find_idle(ops, true);
	struct bl_err ignored;

	if (!w && (w = find_idle(ops, false)) != NULL) {
		bl_worker_join(&w->worker);
		if (bl_worker_start(&w->worker, run_always, w, &ignored) != BIZLOCK_OK)
			w = NULL;
	}
	return w;
}

static void let_one_stand_by(struct bl_ops *ops)
{
	struct bl_ops_worker *w = have_idle(ops);

	if (w)
		bl_worker_by(&w->worker, bl_now() + BL_OP_STUCK_NS);
}

static bool let_one_sleep(struct bl_ops *ops, struct bl_op *op)
{
	bool room = ops->at_bells < op->members->call.client->pool.size / 2;
	struct bl_ops_worker *w = room && !ops->stop ? have_idle(ops) : NULL;

	if (!w)
		return false;
	op->state = BL_OP_SLEEPS;
	w->op = op;
	ops->at_bells++;
	bl_worker_by(&w->worker, 0);
	return true;
}

static void park(struct bl_ops *ops, struct bl_op *op)
{
	bool sleeps = op->acquisition.contest.sleeps && !op->again;

	op->state = BL_OP_PARKED;
	op->acquisition.contest.sleeps = false;
	if (sleeps && let_one_sleep(ops, op))
		return;
	op->acquisition.contest.crowded |= sleeps; /* no thread can be had */
	if (op->again || sleeps)
		make_ready(ops, op);
	else if (op->until != BL_NEVER)
		bl_times_add(ops, op);
	if (op->at == 1) /* the first worker sleeps until a later time */
		wake_first(ops);
}

static void make_done(struct bizlock *b, struct bl_op *op)
{
	struct bl_ops *ops = &b->ops;

	bl_list_remove(&ops->all, &op->all);
	if (op->whole) {
		op = bl_op_end_part(op);
		if (!op)
			return;
		bl_list_remove(&ops->all, &op->all);
	}
	bl_op_drop_number(ops, op);
	op->state = BL_OP_DONE;
	bl_list_add(&ops->done, &op->line);
	bl_loss_ask_dispatch(b);
	if (ops->stop) /* the first worker waits until all are done */
		bl_ops_interrupt(ops);
}

/* ---- how a thread runs requests ------------------------------------------------------------- */

void bl_op_settle(struct bl_op *op, int rc)
{
	struct bizlock *b = op->members->call.client;

	op->again |= rc == BL_AGAIN;
	if (rc == BL_PARKED || rc == BL_AGAIN) {
		park(&b->ops, op);
	} else {
		bl_op_end(op, rc);
		make_done(b, op);
	}
}

static void wake_all(struct bl_ops *ops)
{
	for (struct bl_link *at = ops->all.first; at; at = at->next)
		bl_op_wake(BL_LISTED(at, struct bl_op, all));
}

static void tell_interrupts(struct bizlock *b)
{
	unsigned wakes = atomic_load(&b->wakes);

	if (wakes != b->ops.wakes)
		wake_all(&b->ops);
	b->ops.wakes = wakes;
}

/* Its step may send a statement, and requests that are gathered for a batch would wait for the
 * answer. */
static bool goes_alone(const struct bl_op *op)
{
	if (!op)
		return false;
	if (op->kind == BL_OP_RELEASES)
		return op->members->hold != NULL;
	return op->kind == BL_OP_RENEWS || op->n > 1 ||
	       (op->acquisition.phase == BL_ACQUIRE_CONTENDS &&
	        !bl_contest_wants_batch(&op->acquisition.contest));
}

static void run_cancelled(struct bl_ops *ops, struct bl_op_scratch *scratch)
{
	struct bl_op *op;

	/* Not those that are cancelled meanwhile: ready requests would never have their turn. */
	for (size_t n = ops->cancelled.count; n > 0; n--)
		if ((op = take_ready(&ops->cancelled, scratch)) != NULL)
			bl_op_settle(op, bl_op_step(op));
}

static void run_ready(struct bizlock *b, struct bl_op_scratch *scratch)
{
	struct bl_op *batch[BL_BATCH_MAX], *op;
	size_t n = 0;

	while (n < BL_BATCH_MAX && (n == 0 || !goes_alone(first_in(&b->ops.ready))) &&
	       (op = take_ready(&b->ops.ready, scratch)) != NULL) {
		int rc = bl_op_step(op);

		if (rc == BL_AGAIN)
			batch[n++] = op;
		else
			bl_op_settle(op, rc);
	}
	bl_op_batch(b, batch, n, scratch, bl_op_settle);
}

/* ---- the first worker; workers that stand by, or sleep --------------------------------------- */

/* Half of the connections are for other calls. */
static bool may_begin(const struct bizlock *b)
{
	const struct bl_ops *ops = &b->ops;
	bool all = ops->at_work < b->pool.size / 2;

	if (!ops->at_work)
		return true;
	for (unsigned i = 0; i < ops->size; i++)
		all &= !ops->workers[i].since || bl_passed(ops->workers[i].since + BL_OP_STUCK_NS);
	return all;
}

static void sleep_for_request(struct bizlock *b, struct bl_ops_worker *w)
{
	struct bl_op *op = w->op;
	int rc;

	if (b->ops.at_work) /* this thread may have stood by */
		let_one_stand_by(&b->ops);
	bl_op_use(op, &w->scratch);
	bl_err_clear(&w->scratch.err);
	*op->acquisition.contest.row = (struct bl_row){.found = false};
	rc = bl_contest_sleep_at_bell(&op->acquisition.contest, op->until);
	op->state = BL_OP_RUNS; /* its end may send, too, and no cancel ends that */
	if (rc == BIZLOCK_CANCELLED || rc == BL_AGAIN)
		bl_op_settle(op, BL_AGAIN);
	else
		bl_op_settle(op, bl_op_go_on(op, rc));
	w->op = NULL;
	b->ops.at_bells--;
}

/* Of the idle threads, one looks for work now and then. until: when this thread ends. */
static void stand_by(struct bizlock *b, struct bl_ops_worker *w, bl_time until)
{
	bool looks = b->ops.at_work && find_idle(&b->ops, true) == w;

	w->worker.ends = !looks && bl_passed(until);
	w->worker.at = looks ? bl_now() + BL_OP_STUCK_NS : until;
	if (!w->worker.ends)
		bl_worker_sleep(&w->worker, &b->mu);
}

static void rest(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct pollfd fd = {.fd = ops->wake_fd, .events = POLLIN};
	bl_time until = bl_now() + (ops->ready.first ? BL_OP_STUCK_NS : TICK_NS);
	eventfd_t ignored;

	until = bl_earlier(until, bl_times_first(ops));
	ops->asleep = true;
	bl_unlock(b);
	poll(&fd, 1, (int)bl_left_ms(until));
	bl_lock(b);
	ops->asleep = false;
	if (fd.revents)
		eventfd_read(ops->wake_fd, &ignored);
}

static void *run_always(void *arg)
{
	struct bl_ops_worker *w = arg;
	struct bizlock *b = w->client;
	struct bl_ops *ops = &b->ops;
	bl_time until = bl_now() + IDLE_NS;
	struct bl_op *op;

	bl_lock(b);
	while (!w->worker.ends && (!ops->stop || ops->all.count > 0)) {
		bool begins;

		tell_interrupts(b);
		while ((op = bl_times_due(ops)) != NULL)
			make_ready(ops, op);
		begins = ops->ready.first && may_begin(b);
		if (w->op) {
			sleep_for_request(b, w);
			until = bl_now() + IDLE_NS;
		} else if (begins || ops->cancelled.first) {
			w->since = bl_now();
			ops->at_work++;
			if (ops->all.count > 1)
				let_one_stand_by(ops);
			/* As a rule these need no connection: they go even if too many threads wait
			 * for the server. */
			run_cancelled(ops, &w->scratch);
			if (begins)
				run_ready(b, &w->scratch);
			ops->at_work--;
			w->since = 0;
			until = bl_now() + IDLE_NS;
		} else if (w == ops->workers) {
			rest(b);
		} else {
			stand_by(b, w, until);
		}
	}
	bl_unlock(b);
	return NULL;
}

/* The first one, one for each connection, and one to stand by. */
static bool make_workers(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;

	if (ops->workers)
		return true;
	ops->workers = calloc(b->pool.size + 2, sizeof(*ops->workers));
	ops->size = ops->workers ? b->pool.size + 2 : 0;
	for (unsigned i = 0; i < ops->size; i++)
		ops->workers[i].client = b;
	return ops->size > 0;
}

static int start_thread(struct bizlock *b, struct bl_err *err)
{
	struct bl_ops *ops = &b->ops;

	if (!make_workers(b))
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (ops->workers->worker.running)
		return BIZLOCK_OK;
	if (ops->wake_fd < 0)
		ops->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (ops->wake_fd < 0)
		return bl_err_set(err, BIZLOCK_NOMEM, "no file descriptor is left");
	return bl_worker_start(&ops->workers->worker, run_always, ops->workers, err);
}

/* ---- starting, cancelling and dispatching requests ------------------------------------------ */

static void begin(struct bl_ops *ops, struct bl_op *op)
{
	struct bl_op *part;

	bl_list_add(&ops->all, &op->all);
	if (op->parts_left == 0)
		make_ready(ops, op);
	else
		op->state = BL_OP_RUNS;
	while ((part = take_first(&op->parts)) != NULL) {
		bl_list_add(&ops->all, &part->all);
		make_ready(ops, part);
	}
}

int bl_ops_start(struct bizlock *b, struct bl_op *op, uint64_t *ret, struct bl_err *err)
{
	struct bl_ops *ops = &b->ops;
	size_t count;
	int rc;

	bl_lock(b);
	count = ops->all.count + 1 + op->parts.count;
	rc = start_thread(b, err);
	if (rc == BIZLOCK_OK && !(bl_times_reserve(ops, count) && bl_op_give_number(ops, op)))
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (rc == BIZLOCK_OK) {
		begin(ops, op);
		if (ops->at_work)
			let_one_stand_by(ops);
		if (ret)
			*ret = op->number;
	}
	bl_unlock(b);
	return rc;
}

static void cancel(struct bl_ops *ops, struct bl_op *op)
{
	if (op->cancelled)
		return;
	op->cancelled = true;
	if (op->state == BL_OP_READY) {
		bl_list_remove(&ops->ready, &op->line);
		make_ready(ops, op);
	}
	bl_op_wake(op);
	bl_op_interrupt(op);
	/* This costs the connection, because the server may be about to answer. */
	if (op->state == BL_OP_SLEEPS && op->acquisition.contest.conn)
		bl_conn_wake(op->acquisition.contest.conn);
	if (ops->at_work)
		let_one_stand_by(ops);
}

int bl_ops_cancel(struct bizlock *b, uint64_t number, struct bl_err *err)
{
	struct bl_ops *ops = &b->ops;
	struct bl_op *op;
	int rc = BIZLOCK_OK;

	bl_lock(b);
	op = bl_op_find(ops, number);
	if (number == 0 || number > ops->last_number)
		rc = bl_err_set(err, BIZLOCK_INVALID,
		                "request is %" PRIu64 ": no request of this client has that number",
		                number);
	else if (op && op->kind == BL_OP_ACQUIRES)
		cancel(ops, op);
	bl_unlock(b);
	return rc;
}

int bl_ops_fd(struct bizlock *b)
{
	int fd;

	bl_lock(b);
	fd = bl_loss_fd(b);
	if (b->ops.done.first)
		bl_loss_ask_dispatch(b);
	bl_unlock(b);
	return fd;
}

/* Requests that are done from here on make the descriptor readable again. */
size_t bl_ops_dispatch(struct bizlock *b)
{
	size_t n;

	bl_lock(b);
	bl_loss_answer_dispatch(b);
	n = b->ops.done.count;
	bl_unlock(b);
	return n;
}

void bl_ops_dispatched(struct bizlock *b)
{
	bl_lock(b);
	if (b->ops.done.first)
		bl_loss_ask_dispatch(b);
	bl_unlock(b);
}

struct bl_op *bl_ops_take_done(struct bizlock *b)
{
	struct bl_op *op;

	bl_lock(b);
	op = take_first(&b->ops.done);
	bl_unlock(b);
	return op;
}

/* The hold of a key for which the request was granted the first level, or NULL. */
static struct bl_hold *hold_of(const struct bizlock *b, const struct bl_op *op, size_t i)
{
	const struct bl_member *m = &op->members[i];
	const bizlock_grant *grant = &op->grants[m->index];
	struct bl_hold *h = bl_held_find(&b->held, &m->call.key, &m->call.owner);
	bool granted = op->kind == BL_OP_ACQUIRES && op->rc == BIZLOCK_OK && grant->depth == 1;

	return granted && h && h->fence == grant->fence ? h : NULL;
}

/* A program that was told of the loss before the grant would believe in the grant. */
void bl_ops_told(struct bizlock *b, const struct bl_op *op)
{
	bl_lock(b);
	for (size_t i = 0; i < op->n; i++) {
		struct bl_hold *h = hold_of(b, op, i);

		if (h && h->promised && h->state == BL_HOLD_LOST)
			bl_loss_note(b, h);
		if (h)
			h->promised = false;
	}
	bl_unlock(b);
}

/* ---- their end ------------------------------------------------------------------------------ */

/* It was granted, but nobody was told: so nobody works under the lock. */
static void withdraw(struct bizlock *b, struct bl_op *op)
{
	for (size_t i = 0; i < op->n; i++) {
		struct bl_hold *h = hold_of(b, op, i);

		if (h && h->state == BL_HOLD_HELD && !h->busy)
			bl_hold_orphan(b, h, true);
	}
	if (op->kind == BL_OP_ACQUIRES && op->rc == BIZLOCK_OK)
		op->rc = BIZLOCK_CANCELLED;
}

void bl_ops_stop(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;

	bl_lock(b);
	ops->stop = true;
	wake_all(ops);
	bl_ops_interrupt(ops);
	bl_unlock(b);
	for (unsigned i = 0; i < ops->size; i++) /* the first one ends when all requests have */
		bl_worker_stop(&ops->workers[i].worker, &b->mu);
	bl_lock(b);
	for (struct bl_link *at = ops->done.first; at; at = at->next)
		withdraw(b, BL_LISTED(at, struct bl_op, line));
	bl_unlock(b);
}

void bl_ops_forget(struct bizlock *b)
{
	struct bl_ops *ops = &b->ops;
	struct bl_op *op;

	for (struct bl_link *at = ops->all.first; at; at = at->next)
		BL_LISTED(at, struct bl_op, all)->state = BL_OP_RUNS; /* so that nothing wakes it */
	while ((op = BL_LISTED(ops->all.first, struct bl_op, all)) != NULL) {
		bl_list_remove(&ops->all, &op->all);
		bl_op_drop_number(ops, op);
		bl_op_free(op);
	}
	while ((op = take_first(&ops->done)) != NULL)
		bl_op_free(op);
	if (ops->wake_fd >= 0)
		close(ops->wake_fd);
	free(ops->timed);
	free(ops->workers);
	bl_ops_init(ops);
}
