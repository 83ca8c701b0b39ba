#define _GNU_SOURCE 1
#include "cr_reap.h"

#include <stdio.h>

bizlock_reap_result reaped(bizlock *b, const bizlock_reap_opts *opts)
{
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;

	expect(OK, b, bizlock_reap(b, opts, &result));
	return result;
}

void expect_reaped_as(bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result want)
{
	bizlock_reap_result r = reaped(b, opts);

	cr_assert(r.leases == want.leases && r.rests == want.rests &&
	                  r.row_locks == want.row_locks && r.passed_over == want.passed_over,
	          "%llu leases, %llu rests, %llu row locks, %llu passed over",
	          (unsigned long long)r.leases, (unsigned long long)r.rests,
	          (unsigned long long)r.row_locks, (unsigned long long)r.passed_over);
}

long long left_of(const char *table, const char *prefix)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM %s WHERE biz_id LIKE '%s-%%'", table,
	                 prefix);
}

bool reaper_is_at_work(void)
{
	struct row row = row_of(&world, REAPER);

	return row.there && row.left_us > 0;
}

static int progress(void *arg, const bizlock_reap_result *so_far)
{
	struct at_progress *p = arg;

	p->calls++;
	p->last = *so_far;
	if (p->calls == p->at && p->act)
		p->act(p->arg);
	return p->calls >= p->at ? p->answer : 0;
}

bizlock_reap_opts with_progress(struct at_progress *p, uint32_t batch)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.batch = batch;
	opts.progress = progress;
	opts.arg = p;
	return opts;
}

static void *run(void *arg)
{
	struct reap_thread *t = arg;

	t->rc = bizlock_reap(t->b, &t->opts, &t->result);
	if (t->rc != BIZLOCK_OK && t->rc != BIZLOCK_CANCELLED) /* the client may be gone */
		snprintf(t->errmsg, sizeof(t->errmsg), "%s", bizlock_errmsg(t->b));
	atomic_store(&t->done, true);
	return NULL;
}

void reap_start(struct reap_thread *t, bizlock *b, const bizlock_reap_opts *opts)
{
	*t = (struct reap_thread){.b = b, .opts = *opts, .result = BIZLOCK_REAP_RESULT_INIT};
	if (pthread_create(&t->thread, NULL, run, t) != 0)
		die("no thread");
}

int reap_join(struct reap_thread *t)
{
	eventually(atomic_load(&t->done));
	pthread_join(t->thread, NULL);
	return t->rc;
}
