#include "client/combine.h"

#include "client/contender.h"
#include "client/retry.h"

/* A batch takes two round trips and a dozen statements: of fewer than this, each is done
 * sooner by itself. */
#define WORTH_A_BATCH 6

/* With so many calls under way, acquisitions stand in line where so many connections are
 * at work, although others may be idle: more would make smaller batches, and fewer leave
 * the server idle while a batch is on its way. */
#define CROWD 16
#define ENOUGH_AT_WORK 2

/* ---- a batch ------------------------------------------------------------------------ */

struct company {
	struct bl_conn *conn;
	struct bl_job *jobs[BL_BATCH_MAX];
	struct bl_entry *entries[BL_BATCH_MAX];
	size_t n;
	unsigned bells;     /* to be rung */
	bl_time rung, sent; /* see struct bl_job */
};

static const struct bl_key *key_of(const struct bl_job *job)
{
	return job->entry.hold.key ? job->entry.hold.key : job->entry.claim.key;
}

static bool acquires(const struct bl_job *job)
{
	return !job->entry.hold.key;
}

/* A doorbell that the connection has already would be rung, whoever it is for. */
static bool suits(const struct bizlock *b, const struct company *c, const struct bl_job *job)
{
	if (!acquires(job))
		return true;
	if (c->conn->bells + c->bells >= BL_BELLS_MAX || bl_bell_is_here(b, key_of(job), c->conn))
		return false;
	for (size_t i = 0; i < c->n; i++)
		if (bl_key_equal(key_of(c->jobs[i]), key_of(job)))
			return false;
	return true;
}

static void take_along(const struct bizlock *b, struct company *c, struct bl_job *job)
{
	if (!suits(b, c, job)) {
		bl_job_tell(job, BL_JOB_ALONE);
		return;
	}
	c->bells += acquires(job);
	c->entries[c->n] = &job->entry;
	c->jobs[c->n++] = job;
	job->state = BL_JOB_RUNS;
}

static void tell(const struct company *c, struct bl_job *job, int rc, const struct bl_err *err)
{
	struct bl_entry *e = &job->entry;

	if (rc == BIZLOCK_OK && e->rung) {
		c->conn->bells++;
		*job->bell = c->conn->id;
	}
	if (acquires(job) || !e->done)
		job->rc = rc;
	else
		c->conn->bells--;
	if (job->rc != BIZLOCK_OK)
		*job->err = *err;
	job->sent = c->sent;
	job->rung = c->rung;
	bl_job_tell(job, BL_JOB_DONE);
}

static void tell_all(struct bizlock *b, const struct company *c, int rc, const struct bl_err *err)
{
	bool undone = rc != BIZLOCK_OK && !c->conn->session.gone;

	if (undone)
		bl_retry_count(b, err);
	for (size_t i = 0; i < c->n; i++)
		if (undone)
			bl_job_tell(c->jobs[i], BL_JOB_ALONE);
		else
			tell(c, c->jobs[i], rc, err);
}

static void run(struct bizlock *b, struct company *c)
{
	struct bl_err err;
	int rc;

	bl_err_clear(&err);
	c->conn->ringing = c->bells;
	pthread_mutex_unlock(&b->mu);
	c->rung = bl_now();
	rc = bl_batch_run(&c->conn->session, c->entries, c->n, &c->sent, &err);
	pthread_mutex_lock(&b->mu);
	tell_all(b, c, rc, &err);
}

static void run_all(struct bizlock *b, struct bl_job *job, struct bl_conn *conn)
{
	struct company c = {.conn = conn};

	for (; job; job = c.n < BL_BATCH_MAX ? bl_jobs_next(&conn->jobs) : NULL)
		take_along(b, &c, job);
	if (c.n > 0)
		run(b, &c);
}

/* With the mutex held, and the connection ours: with the jobs that were left for it, or,
 * when they are few, alone. */
static struct bl_conn *lead(struct bizlock *b, struct bl_job *job, struct bl_conn *conn)
{
	bool full = acquires(job) && conn->bells >= BL_BELLS_MAX;

	conn->ringing = acquires(job);
	if (acquires(job) && bl_bell_is_here(b, key_of(job), conn))
		job->state = BL_JOB_ALONE;
	else if (full || conn->jobs.count + 1 < WORTH_A_BATCH)
		return conn;
	else
		run_all(b, job, conn);
	bl_pool_put(&b->pool, conn);
	return NULL;
}

/* ---- in line ------------------------------------------------------------------------- */

static bl_time next_look(const struct bl_job *job, const struct bl_conn *conn,
                         const struct bl_patience *patience)
{
	bl_time stalls = bl_conn_stalls(conn);

	if (job->state != BL_JOB_WAITS)
		return BL_NEVER;
	if (bl_passed(stalls))
		stalls = bl_now() + BL_WAKE_NS;
	return bl_earlier(bl_pool_next_look(patience), stalls);
}

/* Who lines up behind a connection that does not move had better go by another one. */
static bool has_to_leave(const struct bizlock *b, const struct bl_conn *conn)
{
	return bl_passed(bl_conn_stalls(conn)) && bl_pool_others_move(&b->pool, conn);
}

/* With the mutex held. What is under way can not be withdrawn. */
static int wait_in_line(struct bizlock *b, struct bl_job *job, struct bl_conn *conn,
                        const struct bl_patience *patience)
{
	int rc = BIZLOCK_OK;

	bl_jobs_add(&conn->jobs, job);
	while (job->state == BL_JOB_RUNS || job->state == BL_JOB_WAITS) {
		bool leaves = job->state == BL_JOB_WAITS && has_to_leave(b, conn);

		if (job->state == BL_JOB_WAITS && !leaves)
			rc = bl_pool_patience_over(&b->pool, patience, job->err);
		if (leaves || rc != BIZLOCK_OK) {
			bl_jobs_withdraw(&conn->jobs, job);
			job->state = BL_JOB_LEFT;
		} else {
			bl_cond_wait_until(&job->turn, &b->mu, next_look(job, conn, patience));
		}
	}
	return rc;
}

/* Always the first that will do: a few connections then have all the doorbells, and the
 * releases of what is acquired together come together. */
static struct bl_conn *company_for(const struct bizlock *b, const struct bl_job *job)
{
	for (unsigned i = 0; i < b->pool.size; i++) {
		struct bl_conn *c = &b->pool.conns[i];

		if (c->open && c->jobs.count < BL_BATCH_MAX &&
		    c->bells + c->ringing + c->jobs.count < BL_BELLS_MAX && !has_to_leave(b, c) &&
		    !bl_bell_is_here(b, key_of(job), c))
			return c;
	}
	return NULL;
}

/* With the mutex held. conn: where to stand in line, or NULL. */
static int join(struct bizlock *b, struct bl_job *job, struct bl_conn *conn,
                const struct bl_patience *patience, struct bl_conn **ret)
{
	int rc = wait_in_line(b, job, conn, patience);

	*ret = rc == BIZLOCK_OK && job->state == BL_JOB_LEADS ? lead(b, job, conn) : NULL;
	return rc;
}

/* On whatever connection there is, unless it has the doorbell already: then somebody of
 * this client holds the key, and there is nothing to go for. */
static int alone(struct bizlock *b, struct bl_job *job, struct bl_patience patience,
                 struct bl_conn **ret)
{
	struct bl_conn *conn;
	int rc = bl_pool_take(&b->pool, patience, &conn, job->err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (bl_bell_is_here(b, key_of(job), conn)) {
		bl_pool_put(&b->pool, conn);
		return rc;
	}
	conn->ringing = 1;
	*ret = conn;
	return rc;
}

/* Are as many connections at work as there should be? */
static bool is_crowded(const struct bizlock *b)
{
	unsigned most = b->pool.size - b->pool.at_bells;

	if (b->calls >= CROWD && most > ENOUGH_AT_WORK)
		most = ENOUGH_AT_WORK;
	return b->pool.open >= most;
}

static int acquire(struct bizlock *b, struct bl_job *job, struct bl_patience patience,
                   struct bl_conn **ret)
{
	struct bl_conn *conn = is_crowded(b) ? company_for(b, job) : NULL;
	int rc;

	if (conn) {
		rc = join(b, job, conn, &patience, ret);
	} else {
		rc = bl_pool_take(&b->pool, patience, &conn, job->err);
		*ret = rc == BIZLOCK_OK ? lead(b, job, conn) : NULL;
	}
	if (rc == BIZLOCK_OK && (job->state == BL_JOB_ALONE || job->state == BL_JOB_LEFT))
		rc = alone(b, job, patience, ret);
	return rc;
}

static int release(struct bizlock *b, struct bl_job *job, uint64_t bell,
                   struct bl_patience patience, struct bl_conn **ret)
{
	struct bl_conn *conn = bl_pool_find(&b->pool, bell);
	int rc;

	if (conn && conn->lent && patience.open)
		return join(b, job, conn, &patience, ret);
	rc = bl_pool_take_id(&b->pool, bell, patience, &conn, job->err);
	*ret = rc == BIZLOCK_OK && conn ? lead(b, job, conn) : NULL;
	return rc;
}

static int begin(struct bl_job *job, struct bl_err *err)
{
	job->err = err;
	job->state = BL_JOB_WAITS;
	if (bl_cond_init(&job->turn) == 0)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
}

int bl_combine_acquire(struct bl_call *call, struct bl_job *job, struct bl_patience patience,
                       struct bl_conn **ret)
{
	struct bizlock *b = call->client;
	int rc = begin(job, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	patience.open = b->config.combine;
	pthread_mutex_lock(&b->mu);
	rc = acquire(b, job, patience, ret);
	pthread_mutex_unlock(&b->mu);
	pthread_cond_destroy(&job->turn);
	return rc;
}

int bl_combine_release(struct bl_call *call, struct bl_job *job, uint64_t bell,
                       struct bl_conn **ret)
{
	struct bizlock *b = call->client;
	struct bl_patience patience = {.end = call->io_deadline, .open = b->config.combine};
	int rc = begin(job, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	pthread_mutex_lock(&b->mu);
	rc = release(b, job, bell, patience, ret);
	pthread_mutex_unlock(&b->mu);
	pthread_cond_destroy(&job->turn);
	return rc;
}
