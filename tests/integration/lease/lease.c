/* A lease ends by the server's clock. Then anybody may take over. The old holder does not believe
 * in its lease any more, and does not disturb the new one. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(lease, .init = world_begin, .fini = world_end, .timeout = 240);

#define SHORT_MS 300

/* A client that held "k": its lease is over and nobody has taken the lock. */
static bizlock *stale_holder(uint64_t *ret_fence)
{
	bizlock *a = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, a, acquire(a, "k", .lease_ms = SHORT_MS, .grant = &grant));
	lease_is_over("k");
	*ret_fence = grant.fence;
	return a;
}

/* The same, and client b has taken the lock. */
static bizlock *robbed_holder(void)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence), *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	return a;
}

Test(lease, an_expired_one_is_taken_over)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct row row;

	(void)a;
	expect(OK, b, acquire(b, "k", .lease_ms = 60000, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_gt(grant.fence, fence);
	cr_assert_eq(grant.depth, 1);
	row = row_of(&world, KEY("k"));
	cr_assert_eq(row.fence, grant.fence);
	cr_assert_eq(row.depth, 1);
	cr_assert_gt(row.left_us, 30000 * 1000);
}

Test(lease, a_takeover_writes_a_new_hold)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	const char *where = row_where(KEY("k"));
	char *began;

	opts.lease_ms = SHORT_MS;
	opts.flags = BIZLOCK_NO_RENEW;
	opts.note = "first";
	for (int i = 0; i < 3; i++)
		expect(OK, a, bizlock_acquire(a, KEY("k"), &opts, NULL));
	began = db_text(world.admin, "SELECT gmt_create FROM biz_lock WHERE %s", where);
	lease_is_over("k");
	opts.note = "second";
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	cr_assert_str_eq(row_of(&world, KEY("k")).note, "second");
	cr_assert_eq(row_of(&world, KEY("k")).depth, 1);
	cr_assert_eq(db_number(world.admin, "SELECT gmt_create > '%.26s' FROM biz_lock", began), 1);
	free(began);
}

Test(lease, the_owner_that_lost_it_by_time_may_be_the_one_that_takes_over)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, a, acquire(a, "k", .wait_ms = 1000, .grant = &grant));
	cr_assert_gt(grant.fence, fence);
}

/* ---- the old holder -------------------------------------------------------- */

Test(lease, after_a_takeover_release_says_lost)
{
	bizlock *a = robbed_holder();
	const char *before = row_text("k");

	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	cr_assert_str_eq(row_text("k"), before);
	expect(NOT_OWNER, a, bizlock_release(a, KEY("k"), NULL, NULL));
}

Test(lease, after_a_takeover_renew_says_lost)
{
	bizlock *a = robbed_holder();
	const char *before = row_text("k");

	expect(LOST, a, bizlock_renew(a, KEY("k"), NULL, 60000));
	cr_assert_str_eq(row_text("k"), before);
	cr_assert_leq(bizlock_left_ms(a, KEY("k"), NULL), 0);
}

Test(lease, after_a_takeover_verify_says_lost)
{
	bizlock *a = robbed_holder();
	const char *before = row_text("k");

	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
	cr_assert_str_eq(row_text("k"), before);
	cr_assert_leq(bizlock_left_ms(a, KEY("k"), NULL), 0);
}

Test(lease, after_a_takeover_reentry_says_lost)
{
	bizlock *a = robbed_holder();
	const char *before = row_text("k");

	expect(LOST, a, acquire(a, "k"));
	expect(LOST, a, acquire(a, "k"));
	cr_assert_str_eq(row_text("k"), before);
}

/* The row is gone: its new holder has come and left. */
Test(lease, after_a_takeover_and_release_the_old_holder_has_lost_too)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence), *b = client(NULL);

	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(LOST, a, bizlock_renew(a, KEY("k"), NULL, 0));
	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
}

Test(lease, a_lost_hold_is_given_back_level_by_level)
{
	bizlock *a = client(NULL), *b = client(NULL);
	uint32_t left;

	for (int i = 0; i < 3; i++)
		expect(OK, a, acquire(a, "k", .lease_ms = 60000));
	expect(OK, a, bizlock_renew(a, KEY("k"), NULL, SHORT_MS));
	lease_is_over("k");
	expect(OK, b, acquire(b, "k", .lease_ms = 60000));
	for (int i = 0; i < 3; i++)
		expect(LOST, a, bizlock_release(a, KEY("k"), NULL, &left));
	expect(NOT_OWNER, a, bizlock_release(a, KEY("k"), NULL, &left));
	expect(BUSY, a, acquire(a, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, &left));
	expect(OK, a, acquire(a, "k"));
}

/* ---- over, but not taken --------------------------------------------------- */

/* If the lease were extended, a holder that acted on its end, or a client that saw it over, would
 * have been wrong. */
Test(lease, an_expired_one_is_not_renewed_even_if_nobody_took_it)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence);
	const char *before = row_text("k");

	expect(LOST, a, bizlock_renew(a, KEY("k"), NULL, 60000));
	cr_assert_str_eq(row_text("k"), before);
}

Test(lease, an_expired_one_does_not_verify_even_if_nobody_took_it)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence);

	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
}

Test(lease, an_expired_one_is_not_reentered_even_if_nobody_took_it)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence);

	expect(LOST, a, acquire(a, "k"));
}

/* The holder cannot know whether another one held the lock in between, but it has given it back. */
Test(lease, an_expired_one_that_is_given_back_leaves_no_row)
{
	uint64_t fence;
	bizlock *a = stale_holder(&fence), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
	eventually(!row_of(&world, KEY("k")).there);
	expect(OK, b, acquire(b, "k", .grant = &grant));
	cr_assert_eq(grant.flags, 0, "it had been released");
}

/* The lease is over by the server's clock alone, as if that had been set forward. The holder's own
 * clock has seen nothing, so the statement must refuse. */
static bizlock *holder_whose_server_is_ahead(void)
{
	bizlock *a = client(NULL);

	expect(OK, a, acquire(a, "k", .lease_ms = 600000));
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND");
	return a;
}

Test(lease, one_that_the_server_alone_knows_to_be_over_is_not_renewed)
{
	bizlock *a = holder_whose_server_is_ahead();
	const char *before = row_text("k");

	expect(LOST, a, bizlock_renew(a, KEY("k"), NULL, 60000));
	cr_assert_str_eq(row_text("k"), before);
}

Test(lease, one_that_the_server_alone_knows_to_be_over_does_not_verify)
{
	bizlock *a = holder_whose_server_is_ahead();

	expect(LOST, a, bizlock_verify(a, KEY("k"), NULL));
}

Test(lease, one_that_the_server_alone_knows_to_be_over_is_not_reentered)
{
	bizlock *a = holder_whose_server_is_ahead();
	const char *before = row_text("k");

	expect(LOST, a, acquire(a, "k"));
	cr_assert_str_eq(row_text("k"), before);
}

/* ---- renewal ---------------------------------------------------------------- */

Test(lease, renew_extends_it)
{
	bizlock *a = client(NULL);
	long long first, then;

	expect(OK, a, acquire(a, "k", .lease_ms = 10000));
	first = row_of(&world, KEY("k")).timeout_us;
	expect(OK, a, bizlock_renew(a, KEY("k"), NULL, 20000));
	then = row_of(&world, KEY("k")).timeout_us;
	cr_assert_geq(then, first + 10000 * 1000);
	cr_assert_gt(bizlock_left_ms(a, KEY("k"), NULL), 10000);
}

Test(lease, renew_keeps_fence_depth_and_beginning)
{
	bizlock *a = client(NULL);
	const char *fixed = "SELECT fence, reentrant, owner, gmt_create FROM biz_lock";
	char *before, *after;

	expect(OK, a, acquire(a, "k", .lease_ms = 10000));
	expect(OK, a, acquire(a, "k", .lease_ms = 10000));
	before = db_text(world.admin, "%s", fixed);
	expect(OK, a, bizlock_renew(a, KEY("k"), NULL, 0));
	after = db_text(world.admin, "%s", fixed);
	cr_assert_str_eq(after, before);
	free(before);
	free(after);
}

Test(lease, renew_without_a_length_takes_that_of_the_acquisition)
{
	bizlock *a = client(NULL);
	struct row row;

	expect(OK, a, acquire(a, "k", .lease_ms = 50000));
	db_run(world.admin, "UPDATE biz_lock SET timeout = timeout - INTERVAL 30 SECOND");
	expect(OK, a, bizlock_renew(a, KEY("k"), NULL, 0));
	row = row_of(&world, KEY("k"));
	cr_assert(row.left_us > 30000 * 1000 && row.left_us <= 50000 * 1000, "%lld", row.left_us);
}

Test(lease, renewed_in_time_it_outlives_its_first_length)
{
	bizlock *a = client(NULL), *b = client(NULL);
	long long first_end;

	expect(OK, a, acquire(a, "k", .lease_ms = 2000));
	first_end = row_of(&world, KEY("k")).timeout_us;
	expect(OK, a, bizlock_renew(a, KEY("k"), NULL, 60000));
	eventually(db_number(world.admin, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01',"
	                                  " UTC_TIMESTAMP(6))") > first_end);
	expect(BUSY, b, acquire(b, "k"));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
}

/* ---- what the holder believes ------------------------------------------------ */

/* The client never believes in more than the server. It is asked first, because time goes on. A
 * lease that is over is 0, however long ago it ended. */
static void believes_no_more_than_the_server(bizlock *b, const char *id, const char *owner)
{
	long long left_us = row_of(&world, KEY(id)).left_us;
	int64_t left_ms = bizlock_left_ms(b, KEY(id), owner);

	cr_assert(left_ms <= 0 || left_ms * 1000 <= left_us, "%lld ms, server %lld us",
	          (long long)left_ms, left_us);
}

Test(lease, the_holder_never_believes_in_more_than_the_server)
{
	bizlock *a = client(NULL);

	expect(OK, a, acquire(a, "k", .lease_ms = SHORT_MS));
	eventually((believes_no_more_than_the_server(a, "k", NULL),
	            row_of(&world, KEY("k")).left_us < -50 * 1000));
	cr_assert_leq(bizlock_left_ms(a, KEY("k"), NULL), 0);
}

Test(lease, of_a_long_lease_nearly_all_is_believed)
{
	bizlock *a = client(NULL);

	expect(OK, a, acquire(a, "k", .lease_ms = 10 * PATIENCE_MS));
	cr_assert_gt(bizlock_left_ms(a, KEY("k"), NULL), 9 * PATIENCE_MS);
	cr_assert_leq(bizlock_left_ms(a, KEY("k"), NULL), 10 * PATIENCE_MS);
}

/* The reply comes half a second late. That time has passed from the lease, too. */
Test(lease, a_late_reply_does_not_lengthen_the_belief)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *a = client_through(p, NULL);
	struct call call;

	works(a);
	works(a); /* the next acquisition is one packet */
	proxy_hold_replies(p, true);
	call_start(&call, a, "k", .owner = "task-1");
	eventually(row_of(&world, KEY("k")).there);
	eventually(row_of(&world, KEY("k")).left_us < (30000 - 500) * 1000);
	proxy_hold_replies(p, false);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	believes_no_more_than_the_server(a, "k", "task-1");
	proxy_stop(p);
}

/* ---- clocks that are set oddly ------------------------------------------------ */

static void lease_is_right(bizlock *b, const char *id)
{
	long long left;

	expect(OK, b, acquire(b, id, .lease_ms = 20000));
	left = row_of(&world, KEY(id)).left_us;
	cr_assert(left > 0 && left <= 20000 * 1000, "left: %lld us", left);
	expect(OK, b, bizlock_verify(b, KEY(id), NULL));
	expect(OK, b, bizlock_renew(b, KEY(id), NULL, 20000));
	believes_no_more_than_the_server(b, id, NULL);
}

Test(lease, the_clients_time_zone_does_not_matter)
{
	bizlock *stranger = client(NULL), *b;

	setenv("TZ", "Pacific/Kiritimati", 1);
	b = client(NULL);
	lease_is_right(b, "k");
	expect(BUSY, stranger, acquire(stranger, "k"));
}

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(own_lease, .fini = end_own_world, .timeout = 480);

Test(own_lease, the_servers_time_zone_does_not_matter)
{
	bizlock *b, *stranger;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "--default-time-zone=-11:30");
	world_make(&world, &server.at);
	world_migrate(&world);
	b = client(NULL);
	stranger = client(NULL);
	lease_is_right(b, "k");
	expect(BUSY, stranger, acquire(stranger, "k"));
	expect(OK, b, acquire(b, "short", .lease_ms = SHORT_MS));
	lease_is_over("short");
	expect(OK, stranger, acquire(stranger, "short"));
}

/* Nobody is in the way but the server. */
Test(lease, one_that_ends_before_the_answer_is_no_other_contenders)
{
	bizlock *b = client(NULL);

	db_run(world.admin, "CREATE TRIGGER slow BEFORE INSERT ON biz_lock FOR EACH ROW "
	                    "SET NEW.note = SLEEP(0.15)");
	db_run(world.admin, "CREATE TRIGGER slower BEFORE UPDATE ON biz_lock FOR EACH ROW "
	                    "SET NEW.note = SLEEP(0.15)");
	expect(TIMEOUT, b, acquire(b, "k", .lease_ms = 100));
	cr_assert(strstr(bizlock_errmsg(b), "came after the lease of 100 ms"), "%s",
	          bizlock_errmsg(b));
}
