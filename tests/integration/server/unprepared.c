/* Servers that prepare no more statements (max_prepared_stmt_count). Everything works, with
 * statements as text. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <stdio.h>

#include "cr_findings.h"

#define STATEMENTS 14 /* more than a connection prepares */
#define LONG_MS 600000

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(unprepared, .fini = end_own_world, .timeout = 480);

static void begin_own_world(void)
{
	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--max-prepared-stmt-count=0");
	world_make(&world, &server.at);
	world_migrate(&world);
}

/* ---- what is read ----------------------------------------------------------------- */

struct seen {
	unsigned rows;
	bizlock_info last;
	char id[BIZLOCK_ID_MAX + 1], note[BIZLOCK_NOTE_MAX + 1], owner[256];
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *s = arg;

	s->rows++;
	s->last = *info;
	snprintf(s->id, sizeof(s->id), "%s", info->biz_id);
	snprintf(s->note, sizeof(s->note), "%s", info->note);
	snprintf(s->owner, sizeof(s->owner), "%s", info->owner);
	return 0;
}

static void is_seen(bizlock *b, const char *id, const char *note, const bizlock_grant *grant)
{
	struct seen one = {0}, of_type = {0}, all = {0};

	expect(OK, b, bizlock_look(b, KEY(id), see, &one));
	expect(OK, b, bizlock_each(b, "test", see, &of_type));
	expect(OK, b, bizlock_each(b, NULL, see, &all));
	cr_assert(one.rows == 1 && of_type.rows == 1 && all.rows == 1);
	cr_assert_str_eq(one.id, id);
	cr_assert_str_eq(one.note, note);
	cr_assert_str_eq(one.owner, row_of(&world, KEY(id)).owner);
	cr_assert_eq(one.last.fence, grant->fence);
	cr_assert_eq(one.last.depth, grant->depth);
	cr_assert(one.last.left_ms > 0 && one.last.left_ms <= LONG_MS);
	cr_assert_geq(one.last.held_ms, 0);
}

/* ---- a lock's life ------------------------------------------------------------------- */

/* Re-entry, renewal and every kind of release; the longest texts there are, and quotes. */
static void live(bizlock *b, const char *id, const char *note)
{
	bizlock_acquire_opts opts = OPTS(.lease_ms = LONG_MS, .note = note);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct seen none = {0};
	uint32_t depth = 9;

	expect(OK, b, bizlock_acquire(b, KEY(id), &opts, &grant));
	cr_assert(grant.fence > 0 && grant.depth == 1 && grant.flags == 0);
	is_seen(b, id, note ? note : "", &grant);
	expect(OK, b, bizlock_acquire(b, KEY(id), &opts, &grant));
	cr_assert_eq(grant.depth, 2);
	is_seen(b, id, note ? note : "", &grant);
	expect(OK, b, bizlock_renew(b, KEY(id), NULL, LONG_MS - 1000));
	expect(OK, b, bizlock_verify(b, KEY(id), NULL));
	expect(OK, b, bizlock_release(b, KEY(id), NULL, &depth));
	cr_assert_eq(depth, 1);
	expect(OK, b, bizlock_release(b, KEY(id), NULL, &depth));
	cr_assert_eq(depth, 0);
	expect(OK, b, bizlock_look(b, KEY(id), see, &none));
	cr_assert_eq(none.rows, 0);
}

static void live_with_awkward_texts(bizlock *b)
{
	char id[BIZLOCK_ID_MAX + 1], note[BIZLOCK_NOTE_MAX + 1];

	memset(id, '?', sizeof(id) - 1);
	memset(note, '\'', sizeof(note) - 1);
	id[sizeof(id) - 1] = note[sizeof(note) - 1] = '\0';
	live(b, "k", NULL);
	live(b, "O'Neill\\\"?;--\xc3\xa1\xf0\x9f\x94\x92", "why? '\\'");
	live(b, id, note);
}

static void contend(bizlock *a, bizlock *b)
{
	bizlock_grant first = BIZLOCK_GRANT_INIT, grant = BIZLOCK_GRANT_INIT;
	struct call call;

	expect(OK, a, acquire(a, "k", .lease_ms = LONG_MS, .grant = &first));
	expect(BUSY, b, acquire(b, "k"));
	expect_message(b, row_of(&world, KEY("k")).owner);
	call_start(&call, b, "k", .wait_ms = PATIENCE_MS, .owner = "task");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, first.fence);
	expect(OK, a, bizlock_break(a, KEY("k"), call.grant.fence));
	expect(LOST, b, bizlock_release(b, KEY("k"), "task", NULL));
	expect(OK, a, acquire(a, "k", .lease_ms = 100, .wait_ms = -1, .grant = &first));
	lease_is_over("k");
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
	cr_assert(grant.flags == BIZLOCK_TOOK_OVER && grant.fence > first.fence);
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* A hand-off from one owner of a client to another, an acquire without the doorbell, and a rest. */
static void take_other_ways(bizlock *b)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct call call;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	call_start(&call, b, "k", .wait_ms = PATIENCE_MS, .owner = "task-2");
	call_blocks(&call);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, b, bizlock_verify(b, KEY("k"), "task-2"));
	expect(OK, b, bizlock_release(b, KEY("k"), "task-2", NULL));
	opts.flags = BIZLOCK_NO_QUEUE;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	opts.min_hold_ms = 300;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(BUSY, b, acquire(b, "k"));
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

static void take_a_set(bizlock *b)
{
	struct keyset s;

	keyset_make(&s, 5, "s");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LONG_MS));
	expect(OK, b, keyset_release(b, &s, NULL));
}

static void do_everything(const char *const *options)
{
	bizlock *a = client_open(&world, options), *b = client_open(&world, options);

	live_with_awkward_texts(a);
	contend(a, b);
	take_other_ways(b);
	take_a_set(a);
	bizlock_close(b);
	bizlock_close(a);
	cr_assert_eq(all_rows(&world), 0);
}

Test(unprepared, all_goes_as_text)
{
	begin_own_world();
	do_everything(NULL);
	do_everything(OPTIONS("combine", "off"));
	do_everything(OPTIONS("max_connections", "3"));
	cr_assert_eq(db_number(world.admin,
	                       "SELECT VARIABLE_VALUE FROM %s.global_status WHERE "
	                       "VARIABLE_NAME = 'Prepared_stmt_count'",
	                       server_is_mysql(world.admin) ? "performance_schema"
	                                                    : "information_schema"),
	             0);
}

/* The limit is reached when some of a connection's statements are prepared. */
Test(unprepared, some_go_as_text)
{
	begin_own_world();
	for (int i = 1; i <= STATEMENTS; i++) {
		db_run(world.admin, "SET GLOBAL max_prepared_stmt_count = %d", i);
		do_everything(OPTIONS("max_connections", "3"));
	}
}

Test(unprepared, without_doorbells)
{
	bizlock *b;

	begin_own_world();
	b = client(OPTIONS("queue", "off"));
	live_with_awkward_texts(b);
	take_a_set(b);
}

Test(unprepared, the_doctor_counts)
{
	struct findings f;

	begin_own_world();
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "prepared_statements", BIZLOCK_WARN, "max_prepared_stmt_count=0");
	expect_finding(&f, "grants", BIZLOCK_GOOD, "");
	db_run(world.admin, "SET GLOBAL max_prepared_stmt_count = 16382");
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "prepared_statements", BIZLOCK_GOOD, "max_prepared_stmt_count=16382");
}
