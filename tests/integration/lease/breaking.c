/* An operator breaks locks. The holder's next call says LOST, although the break has ended the
 * connection that had the doorbell. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdio.h>

#include "cr_shared.h"

TestSuite(breaking, .init = world_begin, .fini = world_end, .timeout = 240);

#define ROUNDS 100
#define KEYS 3
#define MANY 20

static struct losses losses;

/* All answers must be LOST. */
struct tally {
	int lost, other;
	char errmsg[256];
};

static void tally(struct tally *t, int rc, bizlock *b)
{
	if (rc == BIZLOCK_LOST) {
		t->lost++;
		return;
	}
	t->other++;
	snprintf(t->errmsg, sizeof(t->errmsg), "%s: %s", bizlock_err_name(rc), bizlock_errmsg(b));
}

static void all_lost(const struct tally *t)
{
	cr_assert_eq(t->other, 0, "%d of %d: %s", t->other, t->lost + t->other, t->errmsg);
}

static void break_key(bizlock *b, const char *id, uint64_t fence)
{
	expect(OK, b, bizlock_break(b, KEY(id), fence));
	cr_assert(!row_of(&world, KEY(id)).there);
}

Test(breaking, a_client_that_breaks_its_own_lock_knows_it)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct tally t = {0};

	for (int i = 0; i < ROUNDS; i++) {
		expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
		expect(OK, b, bizlock_break(b, KEY("k"), grant.fence));
		tally(&t, bizlock_release(b, KEY("k"), NULL, NULL), b);
	}
	all_lost(&t);
}

Test(breaking, a_client_that_breaks_one_of_a_set_knows_it)
{
	bizlock *b = client(NULL);
	struct tally t = {0};
	struct keyset s;

	for (int i = 0; i < ROUNDS; i++) {
		keyset_make(&s, KEYS, "k");
		expect(OK, b, keyset_acquire(b, &s, .wait_ms = PATIENCE_MS));
		expect(OK, b, bizlock_break(b, s.keys[1], s.grants[1].fence));
		tally(&t, keyset_release(b, &s, NULL), b);
	}
	all_lost(&t);
	eventually(locks_there(&world) == 0);
}

Test(breaking, the_loss_is_told_at_once_and_once)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	losses_watch(&losses, b);
	expect(OK, b,
	       acquire_renewed(b, "k", .owner = "task", .lease_ms = 600000, .grant = &grant));
	expect(OK, b, acquire_renewed(b, "k", .owner = "task", .lease_ms = 600000));
	break_key(b, "k", grant.fence);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "task"), 0);
	expect(LOST, b, bizlock_verify(b, KEY("k"), "task"));
	expect_message(b, "broken");
	expect(LOST, b, bizlock_release(b, KEY("k"), "task", NULL));
	expect(LOST, b, bizlock_release(b, KEY("k"), "task", NULL));
	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), "task", NULL));
	eventually(losses.count == 1);
	cr_assert_eq(losses.list[0].fence, grant.fence);
	steadily(losses.count == 1, 200);
}

Test(breaking, what_was_not_broken_is_not_lost)
{
	bizlock *b = client(NULL);
	bizlock_grant first = BIZLOCK_GRANT_INIT, grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire_renewed(b, "k", .grant = &first));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, acquire_renewed(b, "k", .grant = &grant));
	expect(BUSY, b, bizlock_break(b, KEY("k"), first.fence));
	expect(LOST, b, bizlock_break(b, KEY("K"), grant.fence));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

struct breaker {
	bizlock *b;
	uint64_t fence;
	int rc;
};

static void *break_it(void *arg)
{
	struct breaker *op = arg;

	op->rc = bizlock_break(op->b, KEY("k"), op->fence);
	return NULL;
}

/* The operator has found the hold with this fence, and waits for its row. When the row is free
 * again, it belongs to another hold, which stays. */
static void row_changes_hands_while_it_is_broken(uint64_t fence, const char *queue)
{
	static struct breaker op;
	pthread_t thread;

	op = (struct breaker){.b = client(OPTIONS("queue", queue)), .fence = fence};

	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin,
	       "UPDATE biz_lock SET owner = 'heir@next', fence = fence + 1000 WHERE fence = %llu",
	       (unsigned long long)fence);
	cr_assert_eq(pthread_create(&thread, NULL, break_it, &op), 0);
	eventually(db_number(world.admin, "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
	                                  "WHERE DB = DATABASE() AND "
	                                  "(INFO LIKE 'UPDATE%%' OR INFO LIKE 'DELETE%%')") == 1);
	db_run(world.admin, "COMMIT");
	cr_assert_eq(pthread_join(thread, NULL), 0);
	cr_assert_neq(op.rc, BIZLOCK_OK);
	cr_assert_eq(
	        db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE owner = 'heir@next'"),
	        1);
}

Test(breaking, a_hold_that_came_during_a_break_stays)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .grant = &grant));
	row_changes_hands_while_it_is_broken(grant.fence, "auto");
}

Test(breaking, a_share_that_came_during_a_break_stays)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *b = client(NULL);

	expect(OK, b, try_as(b, "task", S, 0, &grant));
	row_changes_hands_while_it_is_broken(grant.fence, "auto");
}

Test(breaking, a_hold_that_came_during_a_break_without_doorbells_stays)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *b = client(NULL);

	expect(OK, b, try_as(b, "task", S, 0, &grant));
	row_changes_hands_while_it_is_broken(grant.fence, "off");
}

/* The second request of a break that finds nothing is the DELETE. Keys of the same length make
 * packets of the same length. */
static struct fault loses_the_delete_of_a_break(struct proxy *p, bizlock *b)
{
	struct fault fault = {.what = FAULT_CUT, .side = FAULT_REQUESTS, .packet = 1};
	unsigned requests = 0;
	struct fault_trace trace;

	for (int i = 0; i < 2; i++) /* prepares the statements */
		expect(LOST, b, bizlock_break(b, KEY("n"), 1));
	proxy_arm(p, NULL);
	expect(LOST, b, bizlock_break(b, KEY("n"), 1));
	trace = proxy_trace(p);
	for (unsigned i = 0; i < trace.count; i++)
		if (trace.packets[i].side == FAULT_REQUESTS && requests++ == fault.packet)
			fault.byte = trace.packets[i].size;
	return fault;
}

/* The reply to the DELETE is lost, and the next look finds no row: this break has removed it. */
Test(breaking, a_break_whose_reply_was_lost_is_known_too)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("max_connections", "1"));
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct fault fault;

	losses_watch(&losses, b);
	expect(OK, b, acquire(b, "k", .lease_ms = 600000, .grant = &grant));
	fault = loses_the_delete_of_a_break(p, b);
	proxy_arm(p, &fault);
	expect(OK, b, bizlock_break(b, KEY("k"), grant.fence));
	cr_assert_eq(proxy_fired(p), 1);
	eventually(losses.count == 1);
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	proxy_stop(p);
}

/* The server tells nobody which connections it has ended. But when such a connection is used, its
 * client sees that it ended before anything was sent. */
Test(breaking, an_ended_connection_that_was_sent_nothing_has_done_nothing)
{
	bizlock *b = client(NULL), *op = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct tally t = {0};

	for (int i = 0; i < MANY; i++) {
		unsigned long long bell;

		expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
		bell = (unsigned long long)db_number(world.admin, "SELECT bell FROM biz_lock");
		expect(OK, op, bizlock_break(op, KEY("k"), grant.fence));
		eventually(db_number(world.admin,
		                     "SELECT COUNT(*) FROM information_schema.PROCESSLIST "
		                     "WHERE ID = %llu",
		                     bell) == 0);
		tally(&t, bizlock_release(b, KEY("k"), NULL, NULL), b);
	}
	all_lost(&t);
}
