/* Requests that renew: what bizlock_renew() does, without a wait in the caller. */
#include <bizlock_tx.h>
#include <stdio.h>

#include "cr_ask.h"
#include "cr_numbers.h"

TestSuite(asking_renews, .init = world_begin, .fini = world_end, .timeout = 240);

/* The leases of these tests: each outlasts the test. */
enum { LEASE_MS = 10 * PATIENCE_MS, LONGER_MS = 20 * PATIENCE_MS };

static void hold(struct ask *a, bizlock *b, const char *id)
{
	ask_for(a, b, id, "task", .lease_ms = LEASE_MS, .flags = BIZLOCK_NO_RENEW);
	ask_ends(OK, a);
}

Test(asking_renews, the_lease_begins_anew)
{
	bizlock *b = client(NULL);
	struct ask a;

	hold(&a, b, "k");
	ask_renew(&a, LONGER_MS);
	ask_ends(OK, &a);
	cr_assert_not(a.granted);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	cr_assert_gt(row_of(&world, KEY("k")).left_us, LEASE_MS * 1000LL);
	ask_renew(&a, LEASE_MS);
	ask_ends(OK, &a);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	ask_renew(&a, 0); /* as long as it is now */
	ask_ends(OK, &a);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	expect(OK, b, bizlock_verify(b, KEY("k"), "task"));
	ask_release(&a);
	ask_ends(OK, &a);
	cr_assert(no_row(&world, KEY("k")));
}

Test(asking_renews, what_is_not_held_is_refused)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask a;

	hold(&a, b, "k");
	expect(OK, other, bizlock_break(other, KEY("k"), a.grant.fence));
	expect(OK, other, acquire_as(other, "k", "other"));
	ask_renew(&a, 0);
	ask_ends(LOST, &a);
	cr_assert(strstr(a.errmsg, "renew: test/k: "), "%s", a.errmsg);
	cr_assert(strstr(a.errmsg, "other@"), "%s", a.errmsg);
	ask_release(&a);
	ask_ends(LOST, &a);
	ask_renew(&a, 0);
	ask_ends(NOT_OWNER, &a);
	expect(OK, other, bizlock_verify(other, KEY("k"), "other"));
}

Test(asking_renews, a_lease_that_is_fenced_stays_as_it_is)
{
	bizlock *b = client(NULL);
	struct ask a;

	hold(&a, b, "k");
	db_run(world.admin, "BEGIN");
	expect(OK, b, bizlock_fence(b, KEY("k"), "task", world.admin));
	ask_renew(&a, LONGER_MS);
	ask_ends(BUSY, &a);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), 0);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	db_run(world.admin, "COMMIT");
	ask_renew(&a, LONGER_MS);
	ask_ends(OK, &a);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
}

Test(asking_renews, the_server_refuses)
{
	bizlock *b = client(NULL);
	struct ask a;

	hold(&a, b, "k");
	db_run(world.admin, "CREATE TRIGGER refuse BEFORE UPDATE ON biz_lock FOR EACH ROW SIGNAL "
	                    "SQLSTATE '45000' SET MESSAGE_TEXT = 'no room for this'");
	ask_renew(&a, LONGER_MS);
	ask_ends(DB, &a);
	cr_assert_eq(a.server_error, 1644); /* ER_SIGNAL_EXCEPTION */
	cr_assert(strstr(a.errmsg, "no room for this"), "%s", a.errmsg);
}

static void never(void *arg, const bizlock_result *result)
{
	(void)arg;
	(void)result;
	cr_assert_fail("nothing was started");
}

Test(asking_renews, arguments_are_checked_at_once)
{
	bizlock *b = client(NULL), *new = client_new(&world, NULL);

	expect(INVALID, b, bizlock_renew_start(b, KEY("k"), NULL, 0, never, NULL, NULL));
	expect_message(b, "renew_start: owner is NULL");
	expect(INVALID, b, bizlock_renew_start(b, KEY("k"), "task", 99, never, NULL, NULL));
	expect_message(b, "lease_ms");
	expect(INVALID, b, bizlock_renew_start(b, KEY("k"), "task", 0, NULL, NULL, NULL));
	expect(MISUSE, new, bizlock_renew_start(new, KEY("k"), "task", 0, never, NULL, NULL));
	bizlock_close(new);
}

/* ---- beside a server that does not answer ---------------------------------------------------- */

/* The reply to what is sent next never comes. */
static void swallow_next(struct proxy *p)
{
	static const struct fault fault = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};

	proxy_arm(p, &fault);
}

Test(asking_renews, one_that_hangs_keeps_nobody_waiting)
{
	enum { N = 20 };
	static struct ask hangs, asks[N];
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "60000"));

	hold(&hangs, b, "hangs");
	for (int i = 0; i < N; i++) {
		char id[16];

		snprintf(id, sizeof(id), "k-%d", i);
		hold(&asks[i], b, id);
	}
	swallow_next(p);
	ask_renew(&hangs, LONGER_MS);
	eventually(proxy_fired(p) == 1);
	for (int i = 0; i < N; i++)
		ask_renew(&asks[i], LONGER_MS);
	for (int i = 0; i < N; i++) {
		ask_ends(OK, &asks[i]);
		cr_assert_gt(bizlock_left_ms(b, KEY(asks[i].id), "task"), LEASE_MS);
	}
	cr_assert_eq(hangs.calls, 0);
	cr_assert_eq(numbers_of(b).retried_lost, 0);
	proxy_stop(p);
}

Test(asking_renews, a_lost_reply_is_made_good)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "3000"));
	struct ask a;

	hold(&a, b, "k");
	swallow_next(p);
	ask_renew(&a, LONGER_MS);
	ask_ends(OK, &a);
	cr_assert_eq(proxy_fired(p), 1);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	proxy_stop(p);
}

/* The second one waits for the first, and no thread for the second. */
Test(asking_renews, two_of_one_hold_go_one_after_the_other)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "60000"));
	struct ask first, second;
	unsigned packets;

	hold(&first, b, "k");
	second = first;
	packets = proxy_packets(p);
	proxy_hold_replies(p, true);
	ask_renew(&first, LEASE_MS);
	eventually(proxy_packets(p) > packets);
	ask_renew(&second, LONGER_MS);
	steadily(!is_readable(b) && proxy_packets(p) == packets + 1, 300);
	proxy_hold_replies(p, false);
	ask_ends(OK, &first);
	ask_ends(OK, &second);
	cr_assert_lt(first.turn, second.turn);
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "task"), LEASE_MS);
	proxy_stop(p);
}

/* What the renewer has sent may arrive late, and undo a shorter lease. So nothing is sent before
 * the renewer has its answer, or has given up and ended the connection. */
Test(asking_renews, one_goes_behind_the_renewer)
{
	enum { RENEWED_MS = 9000 };
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("io_timeout_ms", "60000"));
	bool gave_up = false;
	struct ask a;
	long long first;

	ask_for(&a, b, "k", "task", .lease_ms = RENEWED_MS);
	ask_ends(OK, &a);
	first = modified_us("k");
	eventually(modified_us("k") > first); /* it has its connection now */
	swallow_next(p);
	eventually(proxy_fired(p) == 1);
	ask_renew(&a, LEASE_MS);
	for (int64_t end = now_ms() + PATIENCE_MS; !gave_up;) {
		bool told = is_readable(b);

		gave_up = numbers_of(b).renew_unreached > 0;
		cr_assert(!told || gave_up, "it did not wait");
		cr_assert(gave_up || pause_before(end));
	}
	ask_ends(OK, &a);
	expect(OK, b, bizlock_verify(b, KEY("k"), "task"));
	proxy_stop(p);
}
