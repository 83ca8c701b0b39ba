/* Requests in batches: releases whose doorbells are on one connection, and acquisitions with
 * them. */
#include "client/conn/combine.h"
#include "client/contest/attempt.h"
#include "client/giveback/release.h"
#include "client/request/op.h"

typedef void bl_op_ended(struct bl_op *op, int rc);

struct op_batch {
	struct bizlock *b;
	struct bl_err *err; /* of the request at hand */
	struct bl_row *row; /* the row that it sees */
	bl_op_ended *ended;
	struct bl_op *ops[BL_BATCH_MAX];
	struct bl_job jobs[BL_BATCH_MAX];
	struct bl_row rows[BL_BATCH_MAX]; /* the rows in the way of acquisitions */
	size_t n;
};

/* ---- one by one ---------------------------------------------------------------------------- */

static void go_alone(struct op_batch *batch, struct bl_op *op)
{
	struct bl_job none = {.state = BL_JOB_ALONE};

	bl_err_clear(batch->err);
	*batch->row = (struct bl_row){.found = false};
	if (op->kind == BL_OP_RELEASES)
		batch->ended(op, bl_op_release_last(op));
	else
		batch->ended(op,
		             bl_op_go_on(op, bl_attempt_answer(&op->acquisition.contest, &none)));
}

/* ---- together ------------------------------------------------------------------------------ */

static struct bl_job release_job(struct bl_op *op)
{
	return (struct bl_job){.entry = {.hold = bl_hold_ref(&op->members->call, op->members->hold),
	                                 .bell = bl_call_bell(&op->members->call)}};
}

/* Requests that have won are answered first, because their leases run while the others send.
 * Requests that the batch did nothing for become ready again, and go alone, by whichever thread is
 * free. */
static void answer(struct op_batch *batch, bool won)
{
	struct bl_err err = *batch->err;

	for (size_t i = 0; i < batch->n; i++) {
		struct bl_op *op = batch->ops[i];
		const struct bl_job *job = &batch->jobs[i];
		bool done = job->state == BL_JOB_DONE && job->rc == BIZLOCK_OK && job->entry.done;

		if (done != won)
			continue;
		*batch->err = err;
		*batch->row = batch->rows[i];
		if (op->kind == BL_OP_ACQUIRES && job->state == BL_JOB_DONE) {
			batch->ended(op, bl_op_go_on(op, bl_attempt_answer(&op->acquisition.contest,
			                                                   job)));
		} else if (op->kind == BL_OP_ACQUIRES) {
			op->acquisition.contest.unsure |= job->entry.maybe;
			op->acquisition.contest.alone = true;
			batch->ended(op, BL_AGAIN);
		} else if (done) {
			op->members->hold->bell = 0;
			bl_slots_give_back(batch->b, op->members->hold->key.slot);
			bl_release_end(&op->members->call, op->members->hold, true, BIZLOCK_OK);
			batch->ended(op, BIZLOCK_OK);
		} else {
			op->maybe |= job->entry.maybe;
			batch->ended(op, BL_AGAIN);
		}
	}
}

static void run(struct op_batch *batch, struct bl_conn *conn)
{
	struct bl_job *jobs[BL_BATCH_MAX];

	bl_err_clear(batch->err);
	for (size_t i = 0; i < batch->n; i++) {
		struct bl_op *op = batch->ops[i];

		batch->jobs[i] = op->kind == BL_OP_RELEASES
		                         ? release_job(op)
		                         : bl_attempt_job(&op->acquisition.contest);
		if (op->kind == BL_OP_ACQUIRES)
			batch->jobs[i].entry.row = &batch->rows[i];
		batch->rows[i] = (struct bl_row){.found = false};
		jobs[i] = &batch->jobs[i];
	}
	bl_combine_batch(batch->b, conn, jobs, batch->n, batch->err);
	answer(batch, true);
	answer(batch, false);
}

/* No connection can be had. */
static void run_none(struct op_batch *batch, int rc)
{
	struct bl_err err = *batch->err;

	for (size_t i = 0; i < batch->n; i++) {
		struct bl_op *op = batch->ops[i];

		*batch->err = err;
		*batch->row = (struct bl_row){.found = false};
		if (op->kind == BL_OP_RELEASES)
			batch->ended(op, BL_AGAIN);
		else
			batch->ended(op, bl_op_go_on(op, rc));
	}
}

/* *ret NULL: the connection with this doorbell is gone. */
static int take_conn(struct op_batch *batch, uint64_t bell, struct bl_conn **ret)
{
	struct bl_patience patience = {.end = bl_now() + BL_TURN_NS,
	                               .bells = (unsigned)batch->n,
	                               .open = true,
	                               .comes_again = true};

	*ret = NULL;
	return bell ? bl_pool_take_id(&batch->b->pool, bell, patience, ret, batch->err)
	            : bl_pool_take(&batch->b->pool, patience, ret, batch->err);
}

static uint64_t bell_of(const struct bl_op *op)
{
	return op->kind == BL_OP_RELEASES ? op->members->hold->bell : 0;
}

static bool shares(const struct bl_op *op)
{
	return (op->kind == BL_OP_RELEASES ? op->members->hold->key.slot
	                                   : op->members->call.key.slot) > 0;
}

/* Takes requests that go together out of the n: sharers, or all others but releases whose doorbells
 * are elsewhere. The rest moves to the front of `ops`; returns how many these are. */
static size_t gather(struct op_batch *batch, struct bl_op **ops, size_t n, uint64_t *ret_bell)
{
	bool shared = shares(ops[0]);
	size_t others = 0;
	uint64_t bell = 0;

	for (size_t i = 0; i < n && !bell && !shared; i++)
		bell = bell_of(ops[i]);
	batch->n = 0;
	for (size_t i = 0; i < n; i++)
		if (shares(ops[i]) == shared &&
		    (ops[i]->kind == BL_OP_ACQUIRES || bell_of(ops[i]) == bell))
			batch->ops[batch->n++] = ops[i];
		else
			ops[others++] = ops[i];
	*ret_bell = bell;
	return others;
}

void bl_op_batch(struct bizlock *b, struct bl_op **ops, size_t n, struct bl_op_scratch *scratch,
                 bl_op_ended *ended)
{
	struct op_batch batch;
	struct bl_conn *conn;

	batch.b = b;
	batch.err = &scratch->err;
	batch.row = &scratch->row;
	batch.ended = ended;
	for (bl_time start = bl_now(); n > 0 && !bl_passed(start + BL_OP_STUCK_NS);) {
		uint64_t bell;
		int rc;

		n = gather(&batch, ops, n, &bell);
		if (batch.n < BL_WORTH_A_BATCH) {
			for (size_t i = 0; i < batch.n; i++)
				go_alone(&batch, batch.ops[i]);
			continue;
		}
		bl_err_clear(batch.err);
		rc = take_conn(&batch, bell, &conn);
		if (rc == BIZLOCK_OK && conn)
			run(&batch, conn);
		else
			run_none(&batch, rc == BIZLOCK_OK ? BIZLOCK_TIMEOUT : rc);
	}
	for (size_t i = 0; i < n; i++) /* another thread may be free */
		ended(ops[i], BL_AGAIN);
}
