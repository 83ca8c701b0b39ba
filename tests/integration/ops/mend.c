/* Looking at locks, and breaking one. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>

#include "cr_test.h"

TestSuite(mend, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- each ----------------------------------------------------------------- */

struct seen {
	bizlock *b;
	unsigned rows, stop_after;
	bool ordered;
	char last_type[BIZLOCK_TYPE_MAX + 1], last_id[BIZLOCK_ID_MAX + 1], owner[192], note[256];
	bizlock_info info;
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *s = arg;
	int order = strcmp(info->biz_id, s->last_id);

	if (order == 0)
		order = strcmp(info->biz_type, s->last_type);
	s->ordered = s->rows == 0 || (s->ordered && order > 0);
	s->info = *info;
	snprintf(s->last_type, sizeof(s->last_type), "%s", info->biz_type);
	snprintf(s->last_id, sizeof(s->last_id), "%s", info->biz_id);
	snprintf(s->owner, sizeof(s->owner), "%s", info->owner);
	snprintf(s->note, sizeof(s->note), "%s", info->note);
	return ++s->rows == s->stop_after;
}

Test(mend, each_shows_what_is_held)
{
	struct seen s = {.b = client(NULL)};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct row row;

	opts.lease_ms = 40000;
	opts.note = "to see";
	expect(OK, s.b, bizlock_acquire(s.b, KEY("k"), &opts, NULL));
	expect(OK, s.b, bizlock_acquire(s.b, KEY("k"), &opts, &grant));
	expect(OK, s.b, bizlock_each(s.b, NULL, see, &s));
	row = row_of(&world, KEY("k"));
	cr_assert_eq(s.rows, 1);
	cr_assert_geq(s.info.size, sizeof(bizlock_info));
	cr_assert_str_eq(s.last_type, "test");
	cr_assert_str_eq(s.last_id, "k");
	cr_assert_str_eq(s.owner, row.owner);
	cr_assert_str_eq(s.note, "to see");
	cr_assert_eq(s.info.fence, grant.fence);
	cr_assert_eq(s.info.depth, 2);
	cr_assert(s.info.left_ms > 0 && s.info.left_ms <= 40000);
	cr_assert_geq(s.info.left_ms * 1000 + 1000, row.left_us);
	cr_assert(s.info.held_ms >= 0 && s.info.held_ms < PATIENCE_MS);
}

Test(mend, each_shows_stale_ones_too)
{
	struct seen s = {.b = client(NULL)};

	expect(OK, s.b, acquire(s.b, "k", .lease_ms = 100, .wait_ms = -1));
	lease_is_over("k");
	expect(OK, s.b, bizlock_each(s.b, NULL, see, &s));
	cr_assert_eq(s.rows, 1);
	cr_assert_leq(s.info.left_ms, 0);
	cr_assert_geq(s.info.held_ms, 100);
}

Test(mend, each_of_nothing_is_fine)
{
	struct seen s = {.b = client(NULL)};

	expect(OK, s.b, bizlock_each(s.b, NULL, see, &s));
	expect(OK, s.b, bizlock_each(s.b, "none", see, &s));
	cr_assert_eq(s.rows, 0);
}

Test(mend, look_shows_one_key_and_no_other)
{
	struct seen s = {.b = client(NULL)};
	bizlock_key upper = {"TEST", "k"};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, s.b, acquire(s.b, "j"));
	expect(OK, s.b, acquire(s.b, "l"));
	expect(OK, s.b, bizlock_look(s.b, KEY("k"), see, &s));
	cr_assert_eq(s.rows, 0);
	expect(OK, s.b, acquire(s.b, "k", .grant = &grant));
	expect(OK, s.b, bizlock_look(s.b, upper, see, &s));
	cr_assert_eq(s.rows, 0);
	expect(OK, s.b, bizlock_look(s.b, KEY("k"), see, &s));
	cr_assert_eq(s.rows, 1);
	cr_assert_str_eq(s.last_id, "k");
	cr_assert_str_eq(s.last_type, "test");
	cr_assert_eq(s.info.fence, grant.fence);
}

/* More rows than a page of any size holds, as other clients would have made them. */
static void fill(unsigned rows, const char *type)
{
	for (unsigned done = 0; done < rows; done += 100) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		for (unsigned i = done; i < done + 100 && i < rows; i++)
			fprintf(out,
			        "%s(%s, 'id-%u', 'x@1.0.h', 1, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6),"
			        " UTC_TIMESTAMP(6))",
			        i == done ? "" : ",", db_literal(type), i);
		fclose(out);
		db_run(world.admin,
		       "INSERT INTO biz_lock (biz_type, biz_id, owner, reentrant, timeout,"
		       " gmt_create, gmt_modified) VALUES %s",
		       text);
		free(text);
	}
}

Test(mend, each_walks_many_rows_in_the_order_of_the_primary_key)
{
	struct seen s = {.b = client(NULL)};

	fill(1500, "b");
	fill(700, "a");
	expect(OK, s.b, bizlock_each(s.b, NULL, see, &s));
	cr_assert_eq(s.rows, 2200);
	cr_assert(s.ordered);
}

Test(mend, each_shows_one_type_only_byte_for_byte)
{
	struct seen s = {.b = client(NULL)};

	fill(1100, "a");
	fill(30, "A");
	fill(20, "a ");
	fill(10, "\xc3\xa1");
	expect(OK, s.b, bizlock_each(s.b, "a", see, &s));
	cr_assert_eq(s.rows, 1100);
	cr_assert(s.ordered);
	s.rows = 0;
	expect(OK, s.b, bizlock_each(s.b, "a ", see, &s));
	cr_assert_eq(s.rows, 20);
}

Test(mend, each_stops_when_told)
{
	struct seen s = {.b = client(NULL), .stop_after = 3};

	fill(10, "a");
	expect(OK, s.b, bizlock_each(s.b, NULL, see, &s));
	cr_assert_eq(s.rows, 3);
}

static int acquire_and_release(bizlock *b)
{
	int rc = acquire(b, "inside");

	return rc == BIZLOCK_OK ? bizlock_release(b, KEY("inside"), NULL, NULL) : rc;
}

/* The callback uses the library, and breaks the very row it is shown. */
static int break_it(void *arg, const bizlock_info *info)
{
	struct seen *s = arg;
	bizlock_key key = {info->biz_type, info->biz_id};

	if (s->rows % 100 == 0 && acquire_and_release(s->b) != BIZLOCK_OK)
		return 1;
	if (bizlock_break(s->b, key, info->fence) != BIZLOCK_OK)
		return 1;
	s->rows++;
	return 0;
}

Test(mend, the_callback_of_each_may_call_the_library)
{
	struct seen s = {.b = client(OPTIONS("max_connections", "1"))};

	fill(1200, "a");
	expect(OK, s.b, bizlock_each(s.b, "a", break_it, &s));
	cr_assert_eq(s.rows, 1200);
	cr_assert_eq(locks_there(&world), 0);
}

/* ---- break ------------------------------------------------------------------ */

Test(mend, break_frees_the_lock_and_the_holder_learns_it)
{
	bizlock *a = client(NULL), *op = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence;

	expect(OK, a, acquire(a, "k", .lease_ms = 600000, .grant = &grant));
	fence = grant.fence;
	expect(OK, op, bizlock_break(op, KEY("k"), fence));
	cr_assert(!row_of(&world, KEY("k")).there);
	expect(OK, op, acquire(op, "k", .grant = &grant));
	cr_assert_gt(grant.fence, fence);
	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, op, bizlock_verify(op, KEY("k"), NULL));
}

Test(mend, break_never_breaks_a_newer_holder)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	const char *before;

	expect(OK, a, acquire(a, "k", .grant = &grant));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, b, acquire(b, "k"));
	before = row_text("k");
	expect(BUSY, a, bizlock_break(a, KEY("k"), grant.fence));
	expect_message(a, row_of(&world, KEY("k")).owner);
	cr_assert_str_eq(row_text("k"), before);
}

Test(mend, break_of_nothing_says_lost)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(LOST, b, bizlock_break(b, KEY("k"), 1));
	expect(OK, b, acquire(b, "k", .grant = &grant));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(LOST, b, bizlock_break(b, KEY("k"), grant.fence));
}

Test(mend, break_is_for_one_key)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, a, acquire(a, "k", .grant = &grant));
	expect(LOST, b, bizlock_break(b, KEY("K"), grant.fence));
	expect(LOST, b, bizlock_break(b, KEY("k "), grant.fence));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
}

/* A holder that hangs keeps its doorbell. A waiter must not sleep to the end of a lease that was
 * broken. */
Test(mend, break_wakes_those_who_wait_for_a_hanging_holder)
{
	struct peer holder = peer_start(&world, NULL);
	bizlock *mender = client(NULL), *b = client(NULL);
	struct answer held = peer_acquire(&holder, "k", .lease_ms = 600000);
	struct call call;

	peer_signal(&holder, SIGSTOP);
	call_start(&call, b, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, mender, bizlock_break(mender, KEY("k"), held.grant.fence));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	peer_signal(&holder, SIGCONT);
	expect_answer(LOST, peer_release(&holder, "k"));
	peer_end(&holder);
}
