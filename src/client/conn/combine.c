/* The thread that has the connection (its borrower, or the first in its line of jobs) leads: it
 * takes the jobs out of the line, runs them as one batch with the mutex free, and wakes their
 * threads with the answers. A job that RUNS belongs to the leader until the leader has woken the
 * job's thread. Until then that thread waits without a limit: a job under way cannot be withdrawn,
 * and the leader's statement ends at io_timeout at the latest.
 *
 * The leader writes the answers, gives the connection to the next leader, and wakes the others
 * without the mutex. All of them need the mutex to go on: woken while the leader has it, each would
 * sleep again at once, and be woken again, which costs a quarter of the client's processor time. */
#include "client/conn/combine.h"

#include "client/conn/retry.h"
#include "core/wait.h"
#include "store/session/errclass.h"

/* With CROWD calls under way, acquisitions stand in line at the one connection in use, although
 * others are idle. With two connections in use, one would have nearly all doorbells, and so the
 * batches; a thread that came in between would go alone on the other: a tenth of the statements
 * did, and cost a third of the server's time.
 *
 * 8 threads in one line get a fifth more locks a second than 8 that go alone, for 0.45 of the
 * server's processor time; 4 threads get a sixth fewer.
 *
 * Between two calls a thread is outside the library for a moment, so 8 threads have 7 calls now and
 * then. A thread that went to another connection just then would leave its doorbell there, and so
 * release alone, too. So a crowd counts as one until CROWD_NS after its last batch or
 * acquisition. */
#define CROWD 8
#define CROWD_NS (BL_NS_PER_MS * 2)

/* ---- threads that come back to the line ---------------------------------------------- */

/* A leader waits a moment for the threads of its connection's last batch. They have their answers,
 * and most often come back at once with their next call. Without this wait, the first of them would
 * find the connection idle, go alone, and make all others wait for its commit: with 8 or 16 threads
 * a third of the time.
 *
 * The wait ends after 1/GATHER_PART of the time that the batch took, or GATHER_NS, counted from the
 * end of the batch. The leader waits for at most GATHER_MOST jobs: with more threads some are in
 * line by now, and the server is better kept busy. */
#define GATHER_PART 4
#define GATHER_NS (BL_NS_PER_MS / 5)
#define GATHER_MOST 16

struct bl_gathering {
	unsigned wanted; /* jobs in line */
	pthread_cond_t complete;
};

/* A batch of n threads, which began at `began`, has its answers now. */
static void expect_threads(struct bl_conn *conn, unsigned n, bl_time began)
{
	bl_time now = bl_now();

	conn->expected = n < GATHER_MOST ? n : GATHER_MOST;
	conn->expected_until = now + bl_earlier((now - began) / GATHER_PART, GATHER_NS);
}

/* The caller has the connection, which is open for jobs. Waits until the expected threads are in
 * its line, or their time is over. */
static void gather(struct bizlock *b, struct bl_conn *conn)
{
	struct bl_gathering g = {.wanted = conn->expected > 0 ? conn->expected - 1 : 0};

	conn->expected = 0;
	if (conn->jobs.count >= g.wanted || bl_passed(conn->expected_until) ||
	    bl_cond_init(&g.complete) != 0)
		return;
	conn->gathering = &g;
	while (conn->jobs.count < g.wanted && !bl_passed(conn->expected_until))
		bl_cond_wait_until(&g.complete, &b->mu, conn->expected_until);
	conn->gathering = NULL;
	pthread_cond_destroy(&g.complete);
}

/* A job has come to the line. */
static void note_gathered(const struct bl_conn *conn)
{
	if (conn->gathering && conn->jobs.count >= conn->gathering->wanted)
		pthread_cond_signal(&conn->gathering->complete);
}

/* ---- a batch ------------------------------------------------------------------------ */

struct job_batch {
	struct bl_conn *conn;
	struct bl_job *jobs[BL_BATCH_MAX];
	struct bl_entry *entries[BL_BATCH_MAX];
	size_t n;
	unsigned bells;     /* to be taken */
	bool of_threads;    /* threads come back to the line; requests do not */
	bl_time took_bells; /* when the statement that takes them was about to be sent */
	bl_time sent;       /* see struct bl_job */
};

static const struct bl_key *job_key(const struct bl_job *job)
{
	return bl_entry_key(&job->entry);
}

static bool job_acquires(const struct bl_job *job)
{
	return !job->entry.hold.key;
}

static bool job_shares(const struct bl_job *job)
{
	return job_key(job)->slot > 0;
}

/* A job that shares needs no doorbell, so any connection will do. */
static bool job_takes_bell(const struct bl_job *job)
{
	return job_acquires(job) && !job_shares(job);
}

/* The server would grant the connection once more a doorbell that it has already: see
 * bl_held_has_bell(). */
static bool batch_suits(const struct bizlock *b, const struct job_batch *batch,
                        const struct bl_job *job)
{
	const struct bl_conn *conn = batch->conn;

	if (!job_takes_bell(job))
		return true;
	if (conn->bells + batch->bells >= BL_BELLS_MAX ||
	    bl_held_has_bell(&b->held, job_key(job), conn->id))
		return false;
	for (size_t i = 0; i < batch->n; i++)
		if (bl_key_equal(job_key(batch->jobs[i]), job_key(job)))
			return false;
	return true;
}

static void batch_add(const struct bizlock *b, struct job_batch *batch, struct bl_job *job)
{
	if (!batch_suits(b, batch, job)) {
		bl_job_end(job, BL_JOB_ALONE);
		return;
	}
	batch->bells += job_takes_bell(job);
	batch->entries[batch->n] = &job->entry;
	batch->jobs[batch->n++] = job;
	job->state = BL_JOB_RUNS;
}

static void batch_answer(const struct job_batch *batch, struct bl_job *job, int rc,
                         const struct bl_err *err)
{
	struct bl_entry *e = &job->entry;

	if (rc == BIZLOCK_OK && e->has_bell) {
		batch->conn->bells++;
		*job->bell = batch->conn->id;
	}
	if (job_acquires(job) || !e->done)
		job->rc = rc;
	else if (!job_shares(job))
		batch->conn->bells--;
	if (job->rc != BIZLOCK_OK)
		*job->err = *err;
	job->sent = batch->sent;
	job->state = BL_JOB_DONE;
}

static void note_crowd(struct bizlock *b)
{
	if (b->calls >= CROWD)
		b->pool.crowd_until = bl_now() + CROWD_NS;
}

/* If the answer came late, draws new fences, by one statement for all: with a statement for each, a
 * server would get the more statements the slower it is. */
static void batch_order(const struct bizlock *b, struct job_batch *batch)
{
	if (!bl_passed(batch->took_bells + BL_PROMPT_NS))
		for (size_t i = 0; i < batch->n; i++)
			batch->entries[i]->ordered = true;
	else
		bl_batch_draw_again(&batch->conn->session, batch->entries, batch->n,
		                    b->process.suffix);
}

static void batch_run(struct bizlock *b, struct job_batch *batch)
{
	struct bl_err err;
	bool undone;
	int rc;

	bl_err_clear(&err);
	batch->conn->bells_due = batch->bells;
	bl_unlock(b);
	batch->took_bells = bl_now();
	rc = bl_batch_run(&batch->conn->session, batch->entries, batch->n, b->process.suffix,
	                  &batch->sent, &err);
	if (rc == BIZLOCK_DB && bl_waited_in_vain(&err))
		bl_lock_name(&batch->conn->session, &err);
	if (rc == BIZLOCK_OK)
		batch_order(b, batch);
	bl_lock(b);
	BL_TRACE(&b->trace, NULL, NULL, "batch of %zu: %s", batch->n,
	         rc == BIZLOCK_OK ? "answered" : err.msg);
	note_crowd(b);
	if (batch->of_threads && rc == BIZLOCK_OK)
		expect_threads(batch->conn, (unsigned)batch->n, batch->took_bells);
	undone = rc != BIZLOCK_OK && !batch->conn->session.gone && !bl_table_locked(&err);
	for (size_t i = 0; batch->conn->session.woke && i < batch->n; i++)
		if (!job_acquires(batch->jobs[i]))
			bl_yields_note(&b->yields, job_key(batch->jobs[i]));
	batch->conn->session.woke = false;
	if (undone)
		bl_count_retry(&b->numbers, &err);
	for (size_t i = 0; i < batch->n; i++)
		if (undone)
			batch->jobs[i]->state = BL_JOB_ALONE;
		else
			batch_answer(batch, batch->jobs[i], rc, &err);
}

/* Runs the batch, gives the connection back, and wakes the threads. */
static void batch_lead(struct bizlock *b, struct job_batch *batch)
{
	if (batch->n > 0)
		batch_run(b, batch);
	bl_pool_put(&b->pool, batch->conn);
	bl_unlock(b);
	for (size_t i = 0; i < batch->n; i++)
		bl_job_wake(batch->jobs[i]);
	bl_lock(b);
}

/* Adds jobs in line, up to the first that shares where these do not, or the other way round. */
static void batch_add_line(const struct bizlock *b, struct job_batch *batch, bool shared)
{
	struct bl_list *line = &batch->conn->jobs;

	while (batch->n < BL_BATCH_MAX && line->first && job_shares(bl_jobs_first(line)) == shared)
		batch_add(b, batch, bl_jobs_next(line));
}

static void run_with_line(struct bizlock *b, struct bl_job *job, struct bl_conn *conn)
{
	struct job_batch batch = {.conn = conn, .of_threads = true};

	batch_add(b, &batch, job);
	batch_add_line(b, &batch, job_shares(job));
	batch_lead(b, &batch);
}

void bl_combine_batch(struct bizlock *b, struct bl_conn *conn, struct bl_job **jobs, size_t n,
                      struct bl_err *err)
{
	struct job_batch batch = {.conn = conn};

	for (size_t i = 0; i < n; i++) {
		jobs[i]->err = err;
		batch_add(b, &batch, jobs[i]);
	}
	batch_add_line(b, &batch, job_shares(jobs[0]));
	batch_lead(b, &batch);
}

/* The connection is ours. Runs the job with the jobs in line, and returns NULL; or, if there are
 * few, returns the connection, to go alone on. */
static struct bl_conn *job_lead(struct bizlock *b, struct bl_job *job, struct bl_conn *conn)
{
	bool bell = job_takes_bell(job), full = bell && conn->bells >= BL_BELLS_MAX;

	if (conn->open && !full)
		gather(b, conn);
	conn->bells_due = bell;
	if (bell && bl_held_has_bell(&b->held, job_key(job), conn->id)) {
		job->state = BL_JOB_ALONE;
		bl_pool_put(&b->pool, conn);
		return NULL;
	}
	if (full || conn->jobs.count + 1 < BL_WORTH_A_BATCH)
		return conn;
	run_with_line(b, job, conn);
	return NULL;
}

/* ---- in line ------------------------------------------------------------------------- */

static bl_time job_next_look(const struct bl_job *job, const struct bl_conn *conn,
                             const struct bl_patience *patience)
{
	bl_time stalls = bl_conn_stalls(conn);

	if (job->state != BL_JOB_WAITS)
		return BL_NEVER;
	if (bl_passed(stalls))
		stalls = bl_now() + BL_WAKE_NS;
	return bl_earlier(bl_pool_next_look(patience), stalls);
}

/* A job behind a connection that stalls is better off with another one. */
static bool has_to_leave(const struct bizlock *b, const struct bl_conn *conn)
{
	return bl_passed(bl_conn_stalls(conn)) && bl_pool_others_move(&b->pool, conn);
}

static bool job_ended(struct bizlock *b, struct bl_job *job, bl_time next_look)
{
	bool ended;

	bl_unlock(b);
	ended = bl_event_wait(&job->ended, next_look);
	bl_lock(b);
	return ended;
}

static int job_wait(struct bizlock *b, struct bl_job *job, struct bl_conn *conn,
                    const struct bl_patience *patience)
{
	bool ended = false;
	int rc = BIZLOCK_OK;

	job->ended = (struct bl_event){0};
	job->waited_for = true;
	bl_list_add(&conn->jobs, &job->link);
	note_gathered(conn);
	while (!ended && job->state != BL_JOB_WITHDRAWN) {
		bool leaves = job->state == BL_JOB_WAITS && has_to_leave(b, conn);

		if (job->state == BL_JOB_WAITS && !leaves)
			rc = bl_pool_patience_over(&b->pool, patience, job->err);
		if (leaves || rc != BIZLOCK_OK) {
			bl_list_remove(&conn->jobs, &job->link);
			job->state = BL_JOB_WITHDRAWN;
		} else {
			ended = job_ended(b, job, job_next_look(job, conn, patience));
		}
	}
	job->waited_for = false;
	return rc;
}

static int job_join(struct bizlock *b, struct bl_job *job, struct bl_conn *conn,
                    const struct bl_patience *patience, struct bl_conn **ret)
{
	int rc = job_wait(b, job, conn, patience);

	if (rc == BIZLOCK_OK && job->state == BL_JOB_LEADS)
		*ret = job_lead(b, job, conn);
	return rc;
}

/* ---- jobs that go by any connection -------------------------------------------------- */

/* Are as many connections at work as there should be? */
static bool is_crowded(struct bizlock *b)
{
	unsigned most = b->pool.size - b->pool.at_bells;

	note_crowd(b);
	return b->pool.open >= (bl_passed(b->pool.crowd_until) ? most : 1);
}

/* Always the first connection that suits: a few connections then have all doorbells, and locks that
 * are acquired together are released together. */
static struct bl_conn *job_line(const struct bizlock *b, const struct bl_job *job)
{
	for (unsigned i = 0; i < b->pool.size; i++) {
		struct bl_conn *c = &b->pool.conns[i];

		if (c->open && c->jobs.count < BL_BATCH_MAX &&
		    c->bells + c->bells_due + c->jobs.count < BL_BELLS_MAX && !has_to_leave(b, c) &&
		    !bl_held_has_bell(&b->held, job_key(job), c->id))
			return c;
	}
	return NULL;
}

/* Goes alone on any connection. *ret stays NULL if that connection has the doorbell already: an
 * owner of this client then holds the key, so a try would be in vain. */
static int job_go_alone(struct bizlock *b, struct bl_job *job, struct bl_patience patience,
                        struct bl_conn **ret)
{
	struct bl_conn *conn;
	int rc = bl_pool_take(&b->pool, patience, &conn, job->err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (job_takes_bell(job) && bl_held_has_bell(&b->held, job_key(job), conn->id)) {
		bl_pool_put(&b->pool, conn);
		return rc;
	}
	conn->bells_due = job_takes_bell(job);
	*ret = conn;
	return rc;
}

static int combine_anywhere(struct bizlock *b, struct bl_job *job, struct bl_patience patience,
                            struct bl_conn **ret)
{
	struct bl_conn *conn = is_crowded(b) ? job_line(b, job) : NULL;
	int rc;

	if (conn) {
		rc = job_join(b, job, conn, &patience, ret);
	} else {
		rc = bl_pool_take(&b->pool, patience, &conn, job->err);
		if (rc == BIZLOCK_OK)
			*ret = job_lead(b, job, conn);
	}
	if (rc == BIZLOCK_OK && (job->state == BL_JOB_ALONE || job->state == BL_JOB_WITHDRAWN))
		rc = job_go_alone(b, job, patience, ret);
	return rc;
}

/* ---- a release ----------------------------------------------------------------------- */

static int combine_release(struct bizlock *b, struct bl_job *job, uint64_t bell,
                           struct bl_patience patience, struct bl_conn **ret)
{
	struct bl_conn *conn = bl_pool_find(&b->pool, bell);
	int rc;

	if (conn && conn->lent && patience.open)
		return job_join(b, job, conn, &patience, ret);
	rc = bl_pool_take_id(&b->pool, bell, patience, &conn, job->err);
	if (rc == BIZLOCK_OK && conn)
		*ret = job_lead(b, job, conn);
	return rc;
}

static enum bl_combined job_outcome(const struct bl_job *job, int rc, const struct bl_conn *conn)
{
	bool in_batch = job->state == BL_JOB_DONE;

	if (rc != BIZLOCK_OK || (in_batch && job->rc != BIZLOCK_OK))
		return BL_COMBINED_FAILED;
	if (conn)
		return BL_COMBINED_LENT;
	if (in_batch && job->entry.done)
		return BL_COMBINED_DONE;
	return job->state == BL_JOB_WITHDRAWN && !job_acquires(job) ? BL_COMBINED_STALLS
	                                                            : BL_COMBINED_NOT_DONE;
}

enum bl_combined bl_combine_acquire(struct bl_call *call, struct bl_job *job,
                                    struct bl_patience patience, struct bl_conn **ret)
{
	int rc;

	*ret = NULL;
	job->err = call->err;
	job->state = BL_JOB_WAITS;
	patience.open = call->client->config.combine;
	rc = combine_anywhere(call->client, job, patience, ret);
	return job_outcome(job, rc, *ret);
}

enum bl_combined bl_combine_release(struct bl_call *call, struct bl_job *job, uint64_t bell,
                                    struct bl_conn **ret)
{
	struct bl_patience patience = {.end = call->io_deadline,
	                               .open = call->client->config.combine,
	                               .comes_again = call->comes_again};
	int rc;

	*ret = NULL;
	job->err = call->err;
	job->state = BL_JOB_WAITS;
	rc = bell ? combine_release(call->client, job, bell, patience, ret)
	          : combine_anywhere(call->client, job, patience, ret);
	return job_outcome(job, rc, *ret);
}
