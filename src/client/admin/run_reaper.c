/* The reaper: reads all tables page by page, and purges in batches what is over. */
#include <inttypes.h>
#include <stdio.h>

#include "client/admin/admin.h"
#include "client/conn/retry.h"
#include "client/giveback/release.h"
#include "client/request/acquire.h"
#include "client/request/renew.h"
#include "core/pace.h"
#include "store/session/errclass.h"
#include "store/table/fences.h"
#include "store/table/reap.h"

#define LEASE_MS 10000 /* a reaper that dies keeps others out no longer */

/* Reading is cheap; a small batch is no reason for many small reads. */
#define PAGE_MIN 500u

/* How often it looks after its lock while it pauses. */
#define LOOK_MS 1000

struct reaper {
	struct bl_call *call; /* of its own lock */
	const bizlock_reap_opts *opts;
	bool dry;
	bool done;     /* all that was asked for */
	bool repeated; /* a reply was lost, and the last step was sent again */
	uint32_t pace;
	uint64_t lost; /* items of batches whose reply was lost: they may be purged */
	bizlock_reap_result so_far;
};

/* ---- its lock -------------------------------------------------------------------------- */

static int take_lock(struct bl_member *lock)
{
	struct bl_request request = {.lease_ms = LEASE_MS, .note = "reaping", .once = true};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int rc = bl_client_acquire(lock, 1, &request, &grant);

	if (rc == BIZLOCK_BUSY)
		bl_err_wrap(lock->call.err, "another reaper is at work");
	return rc;
}

/* A lock that could not be given back is let be: two reapers do each other no harm. */
static void give_lock_back(struct bl_call *call)
{
	struct bl_err ignored, *err = call->err;
	uint32_t depth;

	bl_err_clear(&ignored);
	call->err = &ignored;
	bl_client_release(call, &depth);
	call->err = err;
}

/* Called between any two steps. Renews the lock at half of its lease; most often the renewer has
 * done so. */
static int keep_on(struct reaper *r)
{
	struct bl_call *call = r->call;
	int rc = bl_call_check(call);

	call->io_deadline = bl_deadline_in_ms(2 * (int64_t)call->client->config.io_timeout_ms);
	if (rc != BIZLOCK_OK || r->dry || bl_client_left_ms(call) >= LEASE_MS / 2)
		return rc;
	rc = bl_client_renew(call, LEASE_MS);
	if (rc != BIZLOCK_OK)
		bl_err_wrap(call->err, "the reaper's own lock");
	return rc;
}

static int pause_between(struct reaper *r, int64_t took_us)
{
	bl_time needed = bl_now() + bl_pace_rest_us(took_us) * 1000;
	bl_time end = bl_later(bl_deadline_in_ms(r->opts->pause_ms), needed);
	int rc = keep_on(r);

	while (rc == BIZLOCK_OK && !bl_passed(end)) {
		bl_lock(r->call->client);
		bl_call_sleep(r->call, bl_earlier(end, bl_deadline_in_ms(LOOK_MS)));
		bl_unlock(r->call->client);
		rc = keep_on(r);
	}
	return rc;
}

/* ---- steps ------------------------------------------------------------------------------- */

struct step {
	bl_reap_step *what;
	struct bl_reap *table;
};

static int run_reap_step(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct step *step = arg;

	return step->what(s, step->table, err);
}

static int run_statement(struct reaper *r, bl_statement *fn, void *arg)
{
	struct bl_tried tried;
	int rc = keep_on(r);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_lock(r->call->client);
	rc = bl_run(r->call, fn, arg, &tried);
	bl_unlock(r->call->client);
	r->repeated = tried.repeated;
	return rc;
}

static int reap_step(struct reaper *r, struct bl_reap *table, bl_reap_step *what)
{
	struct step step = {what, table};

	return run_statement(r, run_reap_step, &step);
}

static void report(struct reaper *r)
{
	if (r->opts->progress && r->opts->progress(r->opts->arg, &r->so_far) != 0)
		r->done = true;
}

static uint64_t *count_of(struct reaper *r, enum bl_reap_kind kind)
{
	return kind == BL_REAP_LEASES  ? &r->so_far.leases
	       : kind == BL_REAP_RESTS ? &r->so_far.rests
	                               : &r->so_far.row_locks;
}

/* How many more may go. */
static uint64_t room(const struct reaper *r)
{
	const bizlock_reap_result *f = &r->so_far;
	uint64_t gone = f->leases + f->rests + f->row_locks + r->lost;

	if (r->opts->max == 0)
		return UINT64_MAX;
	return gone < r->opts->max ? r->opts->max - gone : 0;
}

static int purge_batch(struct reaper *r, struct bl_reap *table)
{
	uint64_t most = room(r);
	int rc;

	table->most = most < r->pace ? (uint32_t)most : r->pace;
	rc = reap_step(r, table, bl_reap_purge);
	if (rc != BIZLOCK_OK)
		return rc;
	*count_of(r, table->kind) += table->purged;
	if (r->repeated)
		r->lost += table->tried - table->purged;
	else
		r->so_far.passed_over += table->tried - table->purged;
	r->pace = bl_pace_next(r->pace, table->tried, table->took_us);
	r->pace = r->pace < r->opts->batch ? r->pace : r->opts->batch;
	table->from = table->next;
	return rc;
}

static void count_items(struct reaper *r, const struct bl_reap *table)
{
	for (uint32_t i = 0; i < table->count && room(r) > 0; i++)
		++*count_of(r, table->items[i].kind);
}

static bool any(const struct bl_reap *table)
{
	uint32_t i = table->from;

	while (i < table->count && table->items[i].kind != table->kind)
		i++;
	return i < table->count;
}

/* Purges what a page has of one kind. */
static int purge(struct reaper *r, struct bl_reap *table, enum bl_reap_kind kind)
{
	int rc = BIZLOCK_OK;

	table->kind = kind;
	table->from = 0;
	while (rc == BIZLOCK_OK && !r->done && any(table)) {
		rc = purge_batch(r, table);
		if (rc != BIZLOCK_OK)
			break;
		report(r);
		r->done |= room(r) == 0;
		if (!r->done)
			rc = pause_between(r, table->took_us);
	}
	return rc;
}

static int reap_page(struct reaper *r, struct bl_reap *table)
{
	int rc = reap_step(r, table, bl_reap_read);

	if (rc != BIZLOCK_OK)
		return rc;
	r->so_far.looked_at += table->rows;
	if (r->dry)
		count_items(r, table);
	for (int kind = BL_REAP_NONE + 1; kind < BL_REAP_KINDS && rc == BIZLOCK_OK; kind++)
		if (!r->dry)
			rc = purge(r, table, (enum bl_reap_kind)kind);
	if (rc == BIZLOCK_OK && (r->dry || table->count == 0))
		report(r);
	r->done |= room(r) == 0;
	return rc;
}

static int reap_table(struct reaper *r, struct bl_reap *table)
{
	int rc = BIZLOCK_OK;

	do {
		rc = reap_page(r, table);
	} while (rc == BIZLOCK_OK && !r->done && table->rows == table->page);
	bl_reap_free(table);
	return rc;
}

/* Fences that cannot be noted now are noted by the next run. */
static int note_fences(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct bl_err ignored;
	int rc = bl_fences_note(s, arg, &ignored);

	if (rc == BIZLOCK_CONN)
		*err = ignored;
	return rc == BIZLOCK_CONN ? rc : BIZLOCK_OK;
}

static int reap_all(struct reaper *r)
{
	struct bl_reap tables[BL_REAP_TABLES] = {{.older_us = 0}};
	int rc = BIZLOCK_OK;

	for (int i = 0; i < BL_REAP_TABLES && rc == BIZLOCK_OK; i++) {
		tables[i].table = (enum bl_reap_table)i;
		tables[i].older_us = r->opts->older_than_ms * 1000;
		tables[i].owner = r->call->owner_full;
		tables[i].page = r->opts->batch > PAGE_MIN ? r->opts->batch : PAGE_MIN;
		rc = reap_step(r, &tables[i], bl_reap_estimate);
		r->so_far.rows += (uint64_t)tables[i].estimate;
	}
	for (int i = 0; i < BL_REAP_TABLES && rc == BIZLOCK_OK && !r->done; i++)
		rc = reap_table(r, &tables[i]);
	if (rc == BIZLOCK_OK && !r->dry)
		rc = run_statement(r, note_fences, r->call->client->config.table_prefix);
	return rc;
}

/* A name of its own each time: a thread that reaps twice at once, or that holds the lock
 * to keep reapers out, must not enter it again. */
static void reaper_begin(struct bl_call *call, struct bizlock *b, struct bl_err *err)
{
	static const bizlock_key reserved = {BIZLOCK_REAPER_TYPE, BIZLOCK_REAPER_ID};
	struct bl_owner owner;
	struct bl_key key;
	char name[32];

	bl_lock(b);
	snprintf(name, sizeof(name), "reaper-%016" PRIx64, bl_random(b));
	bl_unlock(b);
	bl_key_make(&key, reserved, err);
	bl_owner_make(&owner, name, err);
	bl_call_begin(call, b, &key, &owner, 0, err);
}

int bl_client_reap(struct bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result *ret,
                   struct bl_err *err)
{
	struct bl_member lock = {.index = 0};
	struct reaper r = {.call = &lock.call,
	                   .opts = opts,
	                   .dry = opts->flags & BIZLOCK_REAP_DRY_RUN,
	                   .pace = opts->batch < BL_PACE_FIRST ? opts->batch : BL_PACE_FIRST,
	                   .so_far = BIZLOCK_REAP_RESULT_INIT};
	int rc = BIZLOCK_OK;

	reaper_begin(&lock.call, b, err);
	if (!r.dry)
		rc = take_lock(&lock);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = reap_all(&r);
	if (!r.dry)
		give_lock_back(&lock.call);
	if (rc == BIZLOCK_OK)
		*ret = r.so_far;
	return rc;
}
