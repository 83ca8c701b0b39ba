/* What is done while the server lies. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <string.h>

#include "call.h"
#include "hostile.h"
#include "patience.h"
#include "stale.h"

#define DAY_MS 86400000LL

struct row row_now(const struct run *r, const char *id)
{
	return r->scenario->mode ? shared_row_of(&r->bench->world, KEY(id))
	                         : row_of(&r->bench->world, KEY(id));
}

static uint32_t mode_of(const struct run *r, const bizlock *b)
{
	const struct scenario *s = r->scenario;

	if (!s->mode || b == r->b)
		return s->mode & BIZLOCK_SHARED;
	return s->mode == AMONG || s->limit ? BIZLOCK_SHARED : 0;
}

int take(struct run *r, bizlock *b, const char *id, int64_t wait_ms, bizlock_grant *ret)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = wait_ms;
	opts.lease_ms = r->scenario->client == FAST_RENEWAL ? 900 : LEASE_MS;
	opts.owner = ME;
	opts.flags = mode_of(r, b);
	opts.limit = opts.flags ? r->scenario->limit : 0;
	return bizlock_acquire(b, KEY(id), &opts, ret);
}

/* ---- before it ------------------------------------------------------------- */

/* Somebody has shared it before, where it is shared. */
static void nothing(struct run *r)
{
	if (r->scenario->mode)
		stale_header(r->bench->world.admin, r->id);
}

/* There is no slot 0: one that shares it has to make the header. */
static void nobody_has_shared(struct run *r)
{
	(void)r;
}

/* Alone, it takes a header that is there. */
static void i_hold(struct run *r)
{
	if (r->scenario->mode == AMONG)
		stale_header(r->bench->world.admin, r->id);
	must_work(r->b, take(r, r->b, r->id, PATIENCE_MS, &r->grant), "the hold");
	r->before = row_now(r, r->id);
}

/* The library's thread that tells of losses is kept busy, too. */
static void lost(void *arg, bizlock_key key, uint64_t fence)
{
	struct run *r = arg;

	(void)fence;
	atomic_store(&r->told_of_loss, true);
	bizlock_release(r->b, key, ME, NULL);
	take(r, r->b, "another", 0, NULL);
}

static void i_want_to_know(struct run *r)
{
	i_hold(r);
	bizlock_on_lost(r->b, lost, r);
}

static void i_run(struct run *r)
{
	i_hold(r);
	must_work(r->b, bizlock_run_begin(r->b, KEY(r->id), ME), "the run");
}

static void i_hold_twice(struct run *r)
{
	i_hold(r);
	i_hold(r);
}

static void i_exported(struct run *r)
{
	i_hold(r);
	must_work(r->b, bizlock_export(r->b, KEY(r->id), ME, r->text, sizeof(r->text)),
	          "the export");
}

static void i_hold_set(struct run *r)
{
	keyset_make(&r->set, SET, r->id);
	must_work(r->b,
	          keyset_acquire(r->b, &r->set, .wait_ms = PATIENCE_MS, .lease_ms = LEASE_MS,
	                         .owner = ME),
	          "the set");
}

/* One after the other, so that the first connection has all the doorbells. */
static void hold(struct run *r, size_t n)
{
	keyset_make(&r->set, n, r->id);
	for (size_t i = 0; i < n; i++)
		must_work(r->b, take(r, r->b, r->set.ids[i], PATIENCE_MS, &r->set.grants[i]),
		          "one of several");
}

static void i_hold_as_a_crowd(struct run *r)
{
	hold(r, THREADS);
}

static void i_hold_many(struct run *r)
{
	hold(r, MANY);
}

static void i_hold_half(struct run *r)
{
	hold(r, MANY / 2);
}

static void stranger_holds(struct run *r)
{
	must_work(r->bench->stranger, take(r, r->bench->stranger, r->id, 0, &r->grant),
	          "a stranger");
}

static void dead_one_holds(struct run *r)
{
	if (r->scenario->mode)
		stale_shared_lease(r->bench->world.admin, r->id, r->scenario->mode == AMONG,
		                   DAY_MS);
	else
		stale_lease(r->bench->world.admin, r->id, DAY_MS);
}

static void make_row_lock(struct run *r, int days_ago)
{
	db_run(r->bench->world.admin,
	       "INSERT INTO biz_row_lock (biz_id, biz_type, gmt_create)"
	       " VALUES ('%s', 'test', UTC_TIMESTAMP(6) - INTERVAL %d DAY)",
	       r->id, days_ago);
}

static void dead_ones_hold(struct run *r)
{
	dead_one_holds(r);
	make_row_lock(r, 3);
}

static void many_hold(struct run *r)
{
	stale_leases(r->bench->world.admin, r->id, .rows = ROWS_THERE, .ago_ms = -DAY_MS);
}

static void begin_transaction(struct run *r, unsigned long flags)
{
	struct server at = relay_address(r->bench->relay);

	r->tx = db_connect(&at, r->bench->world.schema, flags, TX_READ_S);
	db_run(r->tx, "START TRANSACTION");
	db_run(r->tx, "INSERT INTO ledger VALUES (%u)", r->serial);
}

static void i_am_in_transaction(struct run *r)
{
	begin_transaction(r, CLIENT_MULTI_STATEMENTS);
}

static void i_hold_in_transaction(struct run *r)
{
	i_hold(r);
	i_am_in_transaction(r);
}

/* Without CLIENT_MULTI_STATEMENTS, bizlock_commit() asks twice. */
static void i_hold_in_plain_transaction(struct run *r)
{
	i_hold(r);
	begin_transaction(r, 0);
}

static void row_lock_is_there(struct run *r)
{
	make_row_lock(r, 0);
	i_am_in_transaction(r);
}

/* ---- it ---------------------------------------------------------------------- */

static int do_open(struct run *r)
{
	return bizlock_open(r->b);
}

static int do_acquire(struct run *r)
{
	return take(r, r->b, r->id, WAIT_MS, &r->grant);
}

static int do_try(struct run *r)
{
	return take(r, r->b, r->id, 0, NULL);
}

void stranger_releases(struct run *r, const char *owner)
{
	bizlock *b = r->bench->stranger;

	must_work(b, bizlock_release(b, KEY(r->id), owner, NULL), "a stranger");
}

/* Whatever keeps the call from waiting, the stranger releases. */
static int do_wait(struct run *r)
{
	struct call call;

	call_prepare(&call, r->b, r->id, .wait_ms = WAIT_MS, .owner = ME);
	call.opts.flags = r->scenario->mode & BIZLOCK_SHARED;
	call.opts.limit = r->scenario->limit;
	call_go(&call);
	for (int64_t end = now_ms() + 100; !atomic_load(&call.done) && pause_before(end);)
		;
	stranger_releases(r, ME);
	call_join(&call);
	r->grant = call.grant;
	snprintf(r->errmsg, sizeof(r->errmsg), "%s", call.errmsg);
	return call.rc;
}

static int do_release(struct run *r)
{
	return bizlock_release(r->b, KEY(r->id), ME, NULL);
}

static int do_renew(struct run *r)
{
	return bizlock_renew(r->b, KEY(r->id), ME, 2 * LEASE_MS);
}

/* The renewer's turn comes three times in a lease. */
static int do_nothing_for_a_while(struct run *r)
{
	for (int64_t end = now_ms() + 1500;
	     now_ms() < end && relay_seen(r->bench->relay).shots < 1;)
		pause_ms(5);
	return bizlock_left_ms(r->b, KEY(r->id), ME) > 0 ? BIZLOCK_OK : BIZLOCK_LOST;
}

/* What is left of it is seen by how long closing takes. */
static int do_lose(struct run *r)
{
	db_run(r->bench->world.admin, "DELETE FROM biz_lock WHERE biz_id = '%s'", r->id);
	for (int64_t end = now_ms() + 2000; now_ms() < end && !atomic_load(&r->told_of_loss);)
		pause_ms(5);
	return BIZLOCK_OK;
}

static int do_verify(struct run *r)
{
	return bizlock_verify(r->b, KEY(r->id), ME);
}

static int do_acquire_set(struct run *r)
{
	keyset_make(&r->set, SET, r->id);
	return keyset_acquire(r->b, &r->set, .wait_ms = WAIT_MS, .lease_ms = LEASE_MS, .owner = ME);
}

static int do_release_set(struct run *r)
{
	return keyset_release(r->b, &r->set, ME);
}

static int do_run_begin(struct run *r)
{
	return bizlock_run_begin(r->b, KEY(r->id), ME);
}

static int do_run_end(struct run *r)
{
	bizlock_run_result done = BIZLOCK_RUN_RESULT_INIT;

	done.outcome = BIZLOCK_RUN_DONE;
	return bizlock_run_end(r->b, KEY(r->id), ME, &done);
}

static int do_break(struct run *r)
{
	return bizlock_break(r->b, KEY(r->id), r->grant.fence);
}

static int do_reap(struct run *r)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;

	return bizlock_reap(r->b, &opts, &result);
}

static int do_migrate(struct run *r)
{
	return bizlock_migrate(r->b);
}

static int do_export(struct run *r)
{
	return bizlock_export(r->b, KEY(r->id), ME, r->text, sizeof(r->text));
}

static int do_import(struct run *r)
{
	return bizlock_import(r->b, r->text, ME, &r->grant);
}

static int do_row_lock(struct run *r)
{
	return bizlock_row_lock(r->b, KEY(r->id), r->tx, 0);
}

static int do_fence(struct run *r)
{
	return bizlock_fence(r->b, KEY(r->id), ME, r->tx);
}

static int do_commit(struct run *r)
{
	return bizlock_commit(r->b, KEY(r->id), ME, r->tx);
}

#define S BIZLOCK_SHARED
#define X AMONG

const struct scenario scenarios[] = {
        {"open", nothing, do_open, client_works, CLOSED, BIZLOCK_OK, 0, 0},
        {"acquire", nothing, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"acquire-off", nothing, do_acquire, row_is_mine, QUEUE_OFF, BIZLOCK_OK, 0, 0},
        {"acquire-text", nothing, do_acquire, row_is_mine, UNPREPARED, BIZLOCK_OK, 0, 0},
        {"takeover", dead_one_holds, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"wait", stranger_holds, do_wait, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"wait-off", stranger_holds, do_wait, row_is_mine, QUEUE_OFF, BIZLOCK_OK, 0, 0},
        {"wait-text", stranger_holds, do_wait, row_is_mine, UNPREPARED, BIZLOCK_OK, 0, 0},
        {"busy", stranger_holds, do_try, row_is_mine, PLAIN, BIZLOCK_BUSY, 0, 0},
        {"reenter", i_hold, do_acquire, row_is_deep, PLAIN, BIZLOCK_OK, 0, 0},
        {"inner", i_hold_twice, do_release, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"release", i_hold, do_release, row_is_gone, PLAIN, BIZLOCK_OK, 0, 0},
        {"release-off", i_hold, do_release, row_is_gone, QUEUE_OFF, BIZLOCK_OK, 0, 0},
        {"renew", i_hold, do_renew, row_is_renewed, PLAIN, BIZLOCK_OK, 0, 0},
        {"renewer", i_hold, do_nothing_for_a_while, row_is_alive, FAST_RENEWAL, BIZLOCK_OK, 0, 0},
        {"lose", i_want_to_know, do_lose, nothing_is_said, FAST_RENEWAL, BIZLOCK_OK, 0, 0},
        {"verify", i_hold, do_verify, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"set", nothing, do_acquire_set, set_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"set-release", i_hold_set, do_release_set, set_is_gone, PLAIN, BIZLOCK_OK, 0, 0},
        {"crowd", nothing, do_crowd, set_is_mine, FEW_CONNECTIONS, BIZLOCK_OK, 0, 0},
        {"crowd-release", i_hold_as_a_crowd, do_crowd_release, set_is_gone, FEW_CONNECTIONS,
         BIZLOCK_OK, 0, 0},
        {"ask", nothing, do_ask, set_is_mine, TOGETHER, BIZLOCK_OK, 0, 0},
        {"ask-release", i_hold_many, do_ask_to_release, set_is_gone, TOGETHER, BIZLOCK_OK, 0, 0},
        {"ask-both", i_hold_half, do_ask_for_both, set_is_gone_and_more_are_mine, TOGETHER,
         BIZLOCK_OK, 0, 0},
        {"ask-share-first", nobody_has_shared, do_ask_for_one, set_is_mine, PLAIN, BIZLOCK_OK, S,
         0},
        {"share-crowd-release", i_hold_as_a_crowd, do_crowd_release, set_is_gone, FEW_CONNECTIONS,
         BIZLOCK_OK, S, 0},
        {"each", many_hold, do_each, all_were_seen, PLAIN, BIZLOCK_OK, 0, 0},
        {"each-type", many_hold, do_each_of_type, all_were_seen, PLAIN, BIZLOCK_OK, 0, 0},
        {"each-text", many_hold, do_each, all_were_seen, UNPREPARED, BIZLOCK_OK, 0, 0},
        {"look", i_hold, do_look, one_was_seen, PLAIN, BIZLOCK_OK, 0, 0},
        {"waiters", stranger_holds, do_waiters, one_was_seen, PLAIN, BIZLOCK_OK, 0, 0},
        {"break", stranger_holds, do_break, row_is_gone, PLAIN, BIZLOCK_OK, 0, 0},
        {"reap", dead_ones_hold, do_reap, stale_are_gone, PLAIN, BIZLOCK_OK, 0, 0},
        {"run-begin", i_hold, do_run_begin, run_has_begun, PLAIN, BIZLOCK_OK, 0, 0},
        {"run-end", i_run, do_run_end, run_is_done, PLAIN, BIZLOCK_OK, 0, 0},
        {"each-run", i_run, do_each_run, one_was_seen, PLAIN, BIZLOCK_OK, 0, 0},
        {"doctor", nothing, do_doctor, nothing_is_said, CLOSED, BIZLOCK_OK, 0, 0},
        {"migrate", nothing, do_migrate, tables_work, CLOSED, BIZLOCK_OK, 0, 0},
        {"each-migration", nothing, do_each_migration, migrations_were_seen, CLOSED, BIZLOCK_OK, 0,
         0},
        {"export", i_hold, do_export, row_is_exported, PLAIN, BIZLOCK_OK, 0, 0},
        {"import", i_exported, do_import, row_is_mine, PLAIN, BIZLOCK_OK, 0, 0},
        {"row-lock", row_lock_is_there, do_row_lock, row_is_locked, PLAIN, BIZLOCK_OK, 0, 0},
        {"row-lock-new", i_am_in_transaction, do_row_lock, row_is_locked, PLAIN, BIZLOCK_OK, 0, 0},
        {"fence", i_hold_in_transaction, do_fence, row_is_fenced, PLAIN, BIZLOCK_OK, 0, 0},
        {"commit", i_hold_in_transaction, do_commit, ledger_is_written, PLAIN, BIZLOCK_OK, 0, 0},
        {"commit-plain", i_hold_in_plain_transaction, do_commit, ledger_is_written, PLAIN,
         BIZLOCK_OK, 0, 0},
        {"share", nothing, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, S, 0},
        {"share-first", nobody_has_shared, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, S, 0},
        {"share-off", nothing, do_acquire, row_is_mine, QUEUE_OFF, BIZLOCK_OK, S, 0},
        {"share-text", nothing, do_acquire, row_is_mine, UNPREPARED, BIZLOCK_OK, S, 0},
        {"share-takeover", dead_one_holds, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, S, 0},
        {"share-wait", stranger_holds, do_wait, row_is_mine, PLAIN, BIZLOCK_OK, S, 0},
        {"share-release", i_hold, do_release, row_is_gone, PLAIN, BIZLOCK_OK, S, 0},
        {"share-renew", i_hold, do_renew, row_is_renewed, PLAIN, BIZLOCK_OK, S, 0},
        {"share-look", i_hold, do_look, sharer_was_seen, PLAIN, BIZLOCK_OK, S, 0},
        {"share-break", stranger_holds, do_break, sharer_is_gone, PLAIN, BIZLOCK_OK, S, 0},
        {"share-commit", i_hold_in_transaction, do_commit, ledger_is_written, PLAIN, BIZLOCK_OK, S,
         0},
        {"share-export", i_hold, do_export, row_is_exported, PLAIN, BIZLOCK_OK, S, 0},
        {"share-import", i_exported, do_import, row_is_mine, PLAIN, BIZLOCK_OK, S, 0},
        {"slot", nothing, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, S, 1},
        {"slot-first", nobody_has_shared, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, S, 1},
        {"slot-wait", stranger_holds, do_wait, row_is_mine, PLAIN, BIZLOCK_OK, S, 1},
        {"slot-busy", stranger_holds, do_try, row_is_mine, PLAIN, BIZLOCK_BUSY, S, 1},
        {"alone", nothing, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, X, 0},
        {"alone-takeover", dead_one_holds, do_acquire, row_is_mine, PLAIN, BIZLOCK_OK, X, 0},
        {"alone-wait", stranger_holds, do_wait, row_is_mine, PLAIN, BIZLOCK_OK, X, 0},
        {"alone-wait-off", stranger_holds, do_wait, row_is_mine, QUEUE_OFF, BIZLOCK_OK, X, 0},
        {"alone-export", i_hold, do_export, row_is_exported, PLAIN, BIZLOCK_OK, X, 0},
        {"alone-import", i_exported, do_import, row_is_mine, PLAIN, BIZLOCK_OK, X, 0},
        {"alone-release", i_hold, do_release, row_is_gone, PLAIN, BIZLOCK_OK, X, 0},
};
const unsigned scenario_count = sizeof(scenarios) / sizeof(scenarios[0]);
