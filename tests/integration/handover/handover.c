/* A held lock that goes from one process to another. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(handover, .init = world_begin, .fini = world_end, .timeout = 240);

#define SHORT_MS 1500

static void expect_no_longer(bizlock *b, const char *id, const char *owner)
{
	expect(NOT_OWNER, b, bizlock_release(b, KEY(id), owner, NULL));
	expect(NOT_OWNER, b, bizlock_renew(b, KEY(id), owner, 60000));
	expect(NOT_OWNER, b, bizlock_verify(b, KEY(id), owner));
	cr_assert_leq(bizlock_left_ms(b, KEY(id), owner), 0);
}

/* ---- to another process ------------------------------------------------------ */

Test(handover, another_process_holds_it_from_then_on)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *a = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];
	struct answer got;

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 20000, .grant = &grant));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect_no_longer(a, "k", NULL);
	got = peer_import(&peer, text);
	expect_answer(OK, got);
	cr_assert_eq(got.grant.fence, grant.fence);
	cr_assert_eq(got.grant.depth, 1);
	cr_assert_eq(got.grant.lease_ms, 20000);
	cr_assert_eq(got.grant.flags, 0, "nobody was robbed");

	expect_answer(OK, peer_verify(&peer, "k"));
	expect_answer(OK, peer_renew(&peer, "k"));
	got = peer_acquire(&peer, "k");
	expect_answer(OK, got);
	cr_assert_eq(got.grant.depth, 2);
	cr_assert_eq(got.grant.fence, grant.fence);
	expect_no_longer(a, "k", NULL);
	expect(BUSY, a, acquire(a, "k"));
	expect_answer(OK, peer_release(&peer, "k"));
	cr_assert_eq(row_of(&world, KEY("k")).depth, 1);
	expect_answer(OK, peer_release(&peer, "k"));
	cr_assert(!row_of(&world, KEY("k")).there);
	expect(OK, a, acquire(a, "k"));
	peer_end(&peer);
}

/* The row names the exporter, so that people can find it. */
Test(handover, the_row_names_its_new_owner)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *a = client(NULL);
	char text[BIZLOCK_EXPORT_MAX], pid[24];
	struct row before, after;

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 20000));
	before = row_of(&world, KEY("k"));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect_answer(OK, peer_import(&peer, text));
	after = row_of(&world, KEY("k"));
	snprintf(pid, sizeof(pid), "@%d.", (int)peer.pid);
	cr_assert(strstr(after.owner, pid), "%s", after.owner);
	cr_assert_eq(after.fence, before.fence);
	cr_assert_eq(after.depth, 1);
	cr_assert_geq(after.timeout_us, before.timeout_us, "the lease was shortened");
	peer_end(&peer);
}

/* An exported lock is held, even before it is imported. */
Test(handover, between_the_two_nobody_gets_it)
{
	bizlock *a = client(NULL), *b = client(NULL), *c = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(BUSY, a, acquire(a, "k"));
	expect(BUSY, c, acquire(c, "k"));
	expect(TIMEOUT, c, acquire(c, "k", .wait_ms = 300));
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	expect(BUSY, c, acquire(c, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, c, acquire(c, "k"));
}

Test(handover, it_goes_on_and_comes_back)
{
	struct peer peers[3];
	char text[BIZLOCK_EXPORT_MAX], first[BIZLOCK_EXPORT_MAX];
	bizlock_grant grant = BIZLOCK_GRANT_INIT, back = BIZLOCK_GRANT_INIT;
	bizlock *a;

	for (int i = 0; i < 3; i++)
		peers[i] = peer_start(&world, NULL);
	a = client(NULL);
	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000, .grant = &grant));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	memcpy(first, text, sizeof(first));
	for (int i = 0; i < 3; i++) {
		expect_answer(OK, peer_import(&peers[i], text));
		expect_answer(OK, peer_export(&peers[i], "k", text));
		expect_answer(NOT_OWNER, peer_verify(&peers[i], "k"));
	}
	expect(OK, a, bizlock_import(a, text, NULL, &back));
	cr_assert_eq(back.fence, grant.fence);
	/* The row is as it was at the first export. Nevertheless, that export's text is used up. */
	expect_answer(LOST, peer_import(&peers[0], first));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert(!row_of(&world, KEY("k")).there);
	for (int i = 0; i < 3; i++)
		peer_end(&peers[i]);
}

Test(handover, the_exporter_may_take_it_back)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(OK, a, bizlock_import(a, text, NULL, NULL));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	expect(LOST, b, bizlock_import(b, text, NULL, NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
}

/* ---- owners ---------------------------------------------------------------------- */

Test(handover, a_named_owner_gives_and_a_named_owner_gets)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, a, acquire_as(a, "k", "task-17"));
	expect(NOT_OWNER, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(NOT_OWNER, a, bizlock_export(a, KEY("k"), "task-18", text, sizeof(text)));
	expect(OK, a, bizlock_export(a, KEY("k"), "task-17", text, sizeof(text)));
	expect_no_longer(a, "k", "task-17");
	expect(OK, b, bizlock_import(b, text, "job-4", NULL));
	cr_assert(strncmp(row_of(&world, KEY("k")).owner, "job-4@", 6) == 0);
	expect_no_longer(b, "k", NULL);
	expect_no_longer(b, "k", "task-17");
	expect(OK, b, bizlock_verify(b, KEY("k"), "job-4"));
	expect(OK, b, bizlock_release(b, KEY("k"), "job-4", NULL));
	cr_assert(!row_of(&world, KEY("k")).there);
}

struct move {
	bizlock *b;
	const char *text;
	int import, verify, release;
};

static void import_and_release(void *arg)
{
	struct move *m = arg;

	m->import = bizlock_import(m->b, m->text, NULL, NULL);
	m->verify = bizlock_verify(m->b, KEY("k"), NULL);
	m->release = bizlock_release(m->b, KEY("k"), NULL, NULL);
}

Test(handover, one_thread_gives_and_another_gets)
{
	bizlock *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];
	struct move m = {.b = b, .text = text};

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 60000));
	expect(OK, b, bizlock_export(b, KEY("k"), NULL, text, sizeof(text)));
	in_another_thread(import_and_release, &m);
	cr_assert(m.import == BIZLOCK_OK && m.verify == BIZLOCK_OK && m.release == BIZLOCK_OK,
	          "%s, %s, %s", bizlock_err_name(m.import), bizlock_err_name(m.verify),
	          bizlock_err_name(m.release));
	cr_assert(!row_of(&world, KEY("k")).there);
}

/* Between threads of one client, no export is needed. */
static void renew_and_release(void *arg)
{
	struct move *m = arg;

	m->import = bizlock_renew(m->b, KEY("k"), "task-17", 60000);
	m->verify = bizlock_verify(m->b, KEY("k"), "task-17");
	m->release = bizlock_release(m->b, KEY("k"), "task-17", NULL);
}

Test(handover, a_named_owner_needs_none_between_threads)
{
	struct move m = {.b = client(NULL)};

	expect(OK, m.b, acquire_as(m.b, "k", "task-17"));
	in_another_thread(renew_and_release, &m);
	cr_assert(m.import == BIZLOCK_OK && m.verify == BIZLOCK_OK && m.release == BIZLOCK_OK);
	cr_assert(!row_of(&world, KEY("k")).there);
}

/* ---- levels ------------------------------------------------------------------------ */

Test(handover, its_levels_go_with_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts local = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];
	uint32_t left;

	local.flags = BIZLOCK_LOCAL_REENTRY;
	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000));
	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000));
	expect(OK, a, bizlock_acquire(a, KEY("k"), &local, NULL)); /* the row has two */
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect_no_longer(a, "k", NULL);
	expect(OK, b, bizlock_import(b, text, NULL, &grant));
	cr_assert_eq(grant.depth, 3);
	for (uint32_t depth = 3; depth-- > 0;) {
		cr_assert(row_of(&world, KEY("k")).there);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
		cr_assert_eq(left, depth);
	}
	cr_assert(!row_of(&world, KEY("k")).there);
}

/* The job runs once in a period, in whichever process it ended. */
Test(handover, its_minimum_goes_with_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	char text[BIZLOCK_EXPORT_MAX];
	struct row row;

	opts.min_hold_ms = 600000;
	expect(OK, a, bizlock_acquire(a, KEY("k"), &opts, NULL));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	row = row_of(&world, KEY("k"));
	cr_assert(row.there && !row.owner[0] && row.depth == 0);
	cr_assert(row.left_us > 300000 * 1000ll && row.left_us <= 600000 * 1000ll, "%lld",
	          row.left_us);
}

/* ---- renewed by the one who has it ------------------------------------------------------ */

Test(handover, the_importer_renews_it)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];
	uint64_t renewals;
	long long end;

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = SHORT_MS));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	renewals = numbers_of(a).renewals;
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	end = row_of(&world, KEY("k")).timeout_us;
	eventually(row_of(&world, KEY("k")).timeout_us > end + 3 * SHORT_MS * 1000);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_geq(numbers_of(b).renewals, 3);
	cr_assert_eq(numbers_of(a).renewals, renewals);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* It begins anew with the import, and is that of the client that imports. A hold that ends needs no
 * renewal before, which might come late, and then the lease would have ended it. */
static void ends_by_option(const char *max_hold_ms, bool ends)
{
	bizlock *a = client(NULL), *b = client(OPTIONS("max_hold_ms", max_hold_ms));
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = ends ? 20 * PATIENCE_MS : SHORT_MS));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	if (!ends) {
		steadily(bizlock_verify(b, KEY("k"), NULL) == BIZLOCK_OK, 3 * SHORT_MS);
		return;
	}
	eventually(bizlock_verify(b, KEY("k"), NULL) == BIZLOCK_LOST);
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	expect_message(b, "max_hold_ms");
}

Test(handover, the_importer_says_how_long_it_lasts)
{
	ends_by_option("3000", true);
}

Test(handover, the_importer_may_say_for_ever)
{
	ends_by_option("4294967295", false);
}

static atomic_uint losses;

static void count_loss(void *arg, bizlock_key key, uint64_t fence)
{
	(void)arg;
	(void)key;
	(void)fence;
	atomic_fetch_add(&losses, 1);
}

/* The lease of the exported lock ends, and others take over. To the exporter that is no loss. */
Test(handover, nobody_renews_it_before_it_is_imported)
{
	bizlock *a = client(NULL), *b = client(NULL), *c = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];
	long long end;

	expect(OK, a, bizlock_on_lost(a, count_loss, NULL));
	expect(OK, a, acquire_renewed(a, "k", .lease_ms = SHORT_MS));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	end = row_of(&world, KEY("k")).timeout_us;
	steadily(row_of(&world, KEY("k")).timeout_us == end, SHORT_MS);
	lease_is_over("k");
	expect(LOST, c, bizlock_import(c, text, NULL, NULL));
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .lease_ms = 60000, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	expect(LOST, c, bizlock_import(c, text, NULL, NULL));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect_no_longer(a, "k", NULL);
	expect_no_longer(c, "k", NULL);
	cr_assert_eq(atomic_load(&losses), 0);
	cr_assert_eq(numbers_of(a).lost, 0);
	cr_assert_eq(numbers_of(a).held, 0);
}

Test(handover, closing_the_exporter_leaves_it_alone)
{
	bizlock *a = client_open(&world, NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, a, acquire_renewed(a, "k", .lease_ms = 60000));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	bizlock_close(a);
	cr_assert(row_of(&world, KEY("k")).there);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

static void give_away_and_end(void *arg)
{
	struct move *m = arg;

	m->verify = acquire_renewed(m->b, "k", .lease_ms = 60000);
	m->release = bizlock_export(m->b, KEY("k"), NULL, (char *)m->text, BIZLOCK_EXPORT_MAX);
}

/* What a thread holds when it ends is reported lost. The exported lock is no longer among that. */
Test(handover, the_end_of_the_exporting_thread_is_no_loss)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];
	struct move m = {.b = a, .text = text};

	expect(OK, a, bizlock_on_lost(a, count_loss, NULL));
	in_another_thread(give_away_and_end, &m);
	cr_assert(m.verify == BIZLOCK_OK && m.release == BIZLOCK_OK);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	steadily(atomic_load(&losses) == 0, 300);
	cr_assert_eq(numbers_of(b).held, 1);
	cr_assert_eq(numbers_of(a).held, 0);
}

/* ---- those who wait for it ----------------------------------------------------------------- */

static void a_waiter_gets_it_in_the_end(bizlock *a, bizlock *b, bizlock *c)
{
	char text[BIZLOCK_EXPORT_MAX];
	struct call call;
	int64_t released;

	expect(OK, a, acquire_as(a, "k", "giver"));
	call_start(&call, c, "k", .wait_ms = -1, .owner = "waiter");
	call_blocks(&call);
	expect(OK, a, bizlock_export(a, KEY("k"), "giver", text, sizeof(text)));
	steadily(!atomic_load(&call.done), 300);
	expect(OK, b, bizlock_import(b, text, "getter", NULL));
	steadily(!atomic_load(&call.done), 500);
	released = now_ms();
	expect(OK, b, bizlock_release(b, KEY("k"), "getter", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_lt(call.ended - released, 5000);
	cr_assert_eq(call.grant.flags, 0);
	expect(OK, c, bizlock_release(c, KEY("k"), "waiter", NULL));
}

Test(handover, a_waiter_of_any_client_gets_it_in_the_end)
{
	bizlock *a = client(NULL), *b = client(NULL), *c = client(NULL);

	a_waiter_gets_it_in_the_end(a, b, c);
	a_waiter_gets_it_in_the_end(a, b, a);
	a_waiter_gets_it_in_the_end(a, b, b);
}

Test(handover, a_poller_gets_it_in_the_end)
{
	bizlock *a = client(OPTIONS("queue", "off")), *b = client(OPTIONS("queue", "off"));

	deadlocks_may_happen();
	a_waiter_gets_it_in_the_end(a, b, client(OPTIONS("queue", "off")));
}
