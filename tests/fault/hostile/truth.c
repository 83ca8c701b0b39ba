/* What the server has, asked by another way, after a call that said BIZLOCK_OK. */
#define _GNU_SOURCE 1
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hostile.h"
#include "patience.h"
#include "swarm.h"

bool wrong(struct run *r, const char *fmt, ...)
{
	struct swarm_answer answer = {r->rc, r->took_ms, r->errmsg};
	va_list args;

	va_start(args, fmt);
	swarm_say_why(r->why, sizeof(r->why), answer, fmt, args);
	va_end(args);
	return false;
}

#define must(cond)                                                                                 \
	do {                                                                                       \
		if (!(cond))                                                                       \
			return wrong(r, "a false answer: not so: %s", #cond);                      \
	} while (0)

/* A sharer that is told that its slot was refused takes another one. If that was a lie, it has two
 * rows, and the fence of the second one. */
static bool has_another_slot(struct run *r, const char *id, uint64_t fence, unsigned depth)
{
	return r->scenario->mode == BIZLOCK_SHARED &&
	       db_number(r->bench->world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE %s AND slot > 0 AND owner LIKE '" ME
	                 "@%%' AND fence = %llu AND reentrant = %u AND timeout > UTC_TIMESTAMP(6)",
	                 row_where(KEY(id)), (unsigned long long)fence, depth) == 1;
}

static bool is_mine(struct run *r, const char *id, uint64_t fence, unsigned depth)
{
	struct row row = row_now(r, id);

	if (row.fence != fence && has_another_slot(r, id, fence, depth))
		return true;
	must(row.there);
	must(strncmp(row.owner, ME "@", strlen(ME "@")) == 0);
	must(row.fence == fence);
	must(row.depth == depth);
	must(row.left_us > 0);
	return true;
}

bool row_is_mine(struct run *r)
{
	return is_mine(r, r->id, r->grant.fence, 1);
}

bool row_is_deep(struct run *r)
{
	return is_mine(r, r->id, r->grant.fence, 2);
}

bool row_is_renewed(struct run *r)
{
	struct row row = row_now(r, r->id);

	must(row.there && row.left_us > LEASE_MS * 1000LL);
	must(bizlock_left_ms(r->b, KEY(r->id), ME) <= row.left_us / 1000 + 1);
	return row_is_mine(r);
}

/* The client never believes in a longer lease than the server does. */
bool row_is_alive(struct run *r)
{
	int64_t asked = now_ms(), left = bizlock_left_ms(r->b, KEY(r->id), ME);
	struct row row = row_now(r, r->id);

	must(left <= 0 || row.there);
	must(left <= 0 || left <= row.left_us / 1000 + (now_ms() - asked) + 1);
	return true;
}

bool row_is_gone(struct run *r)
{
	must(!row_now(r, r->id).there);
	return true;
}

static bool are_mine(struct run *r, const struct keyset *set)
{
	for (size_t i = 0; i < set->n; i++)
		if (!is_mine(r, set->ids[i], set->grants[i].fence, 1))
			return false;
	return true;
}

bool set_is_mine(struct run *r)
{
	return are_mine(r, &r->set);
}

bool set_is_gone(struct run *r)
{
	for (size_t i = 0; i < r->set.n; i++)
		must(!row_now(r, r->set.ids[i]).there);
	return true;
}

bool set_is_gone_and_more_are_mine(struct run *r)
{
	return set_is_gone(r) && are_mine(r, &r->more);
}

bool all_were_seen(struct run *r)
{
	must(r->shown == ROWS_THERE);
	return true;
}

bool one_was_seen(struct run *r)
{
	must(r->shown == 1);
	return true;
}

/* Some lies hide the row of a sharer: nobody can tell them from the truth. */
static bool hides_sharers(const struct run *r)
{
	static const char *const names[] = {"error-no-table", "affected-null", "another-answer"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (r->lie && strcmp(r->lie->name, names[i]) == 0)
			return true;
	return false;
}

bool sharer_was_seen(struct run *r)
{
	return hides_sharers(r) || one_was_seen(r);
}

bool sharer_is_gone(struct run *r)
{
	return hides_sharers(r) || row_is_gone(r);
}

#define MIGRATIONS 2 /* in sql/ */

bool migrations_were_seen(struct run *r)
{
	must(r->shown == MIGRATIONS);
	return true;
}

bool nothing_is_said(struct run *r)
{
	(void)r;
	return true;
}

static long long count(struct run *r, const char *table)
{
	return db_number(r->bench->world.admin, "SELECT COUNT(*) FROM %s WHERE biz_id = '%s'",
	                 table, r->id);
}

bool stale_are_gone(struct run *r)
{
	must(count(r, "biz_lock") == 0);
	must(count(r, "biz_row_lock") == 0);
	return true;
}

static bool run_is(struct run *r, const char *condition)
{
	must(db_number(r->bench->world.admin,
	               "SELECT COUNT(*) FROM biz_run WHERE biz_id = '%s' AND fence = %llu AND "
	               "runs = 1 AND %s",
	               r->id, (unsigned long long)r->grant.fence, condition) == 1);
	return true;
}

bool run_has_begun(struct run *r)
{
	return run_is(r, "outcome = 'running' AND ended_at IS NULL");
}

bool run_is_done(struct run *r)
{
	return run_is(r, "outcome = 'done' AND succeeded_at = ended_at AND successes = 1");
}

bool client_works(struct run *r)
{
	int rc = take(r, r->b, r->id, PATIENCE_MS, &r->grant);

	if (rc != BIZLOCK_OK)
		return wrong(r, "open, but useless: %s", bizlock_errmsg(r->b));
	return row_is_mine(r);
}

bool tables_work(struct run *r)
{
	int rc = bizlock_open(r->b);

	if (rc != BIZLOCK_OK)
		return wrong(r, "migrated, but useless: %s", bizlock_errmsg(r->b));
	return client_works(r);
}

bool row_is_exported(struct run *r)
{
	struct row row = row_now(r, r->id);

	must(row.there && strncmp(row.owner, "export-", strlen("export-")) == 0);
	must(row.fence == r->grant.fence && row.left_us > 0);
	must(strlen(r->text) > 0);
	return true;
}

static bool is_locked(struct run *r, const char *table, const char *how)
{
	return !db_try(r->bench->locker,
	               "SELECT 1 FROM %s WHERE biz_id = '%s' AND biz_type = 'test' FOR %s NOWAIT",
	               table, r->id, how);
}

bool row_is_locked(struct run *r)
{
	must(is_locked(r, "biz_row_lock", "UPDATE"));
	return true;
}

bool row_is_fenced(struct run *r)
{
	must(row_is_mine(r));
	must(is_locked(r, "biz_lock", "UPDATE"));
	return true;
}

bool ledger_is_written(struct run *r)
{
	must(db_number(r->bench->world.admin, "SELECT COUNT(*) FROM ledger WHERE id = %u",
	               r->serial) == 1);
	return true;
}
