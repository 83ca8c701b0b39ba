/* Slots that go from hand to hand within a client. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_shared.h"

TestSuite(shared_handoff, .init = world_begin, .fini = world_end, .timeout = 240);

/* A run of hand-offs ends after 250 ms. A machine on which that is over before a release makes
 * these tests weaker. */
static void wait_for(struct call *call, bizlock *b, const char *owner, uint32_t flags,
                     uint32_t limit)
{
	wait_as(call, b, owner, flags, limit);
	call_blocks(call);
}

static bool has_slot(const char *owner, unsigned slot)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE owner LIKE '%s%%'"
	                 " AND slot = %u AND " LIVE,
	                 owner, slot) == 1;
}

/* "a2" releases slot 2, of which the answer is kept back, and "n" waits for it. */
struct pair {
	struct proxy *proxy;
	bizlock *b;
	bizlock_grant first;
	struct call next, release;
};

static void until_released(struct pair *p)
{
	proxy_hold_replies(p->proxy, false);
	expect_got(&p->release);
	expect_got(&p->next);
}

/* The one that waits is parked, and knows nothing yet: so no statement but that of the release can
 * have made the row its own. False: its time to be handed over was over. */
static bool is_passed_on(struct pair *p)
{
	int64_t end = now_ms() + 1000;

	p->first = (bizlock_grant)BIZLOCK_GRANT_INIT;
	expect(OK, p->b, try_as(p->b, "a2", S, 2, &p->first));
	wait_for(&p->next, p->b, "n", S, 2);
	call_prepare(&p->release, p->b, "k", .owner = "a2");
	proxy_hold_replies(p->proxy, true);
	call_start_release(&p->release);
	while (!has_slot("n", 2))
		if (!pause_before(end))
			return false;
	cr_assert_not(atomic_load(&p->release.done));
	return true;
}

Test(shared_handoff, one_statement_releases_and_acquires)
{
	struct pair p = {.proxy = proxy_start(&world.at, "127.0.0.1")};

	p.b = client_through(p.proxy, NULL);
	expect(OK, p.b, try_as(p.b, "a1", S, 2, NULL));
	for (int64_t end = now_ms() + PATIENCE_MS; !is_passed_on(&p);) {
		cr_assert_lt(now_ms(), end, "never passed on");
		until_released(&p);
		expect(OK, p.b, release_as(p.b, "n"));
	}
	until_released(&p);
	cr_assert_eq(p.next.grant.slot, 2);
	cr_assert_gt(p.next.grant.fence, p.first.fence);
	cr_assert_eq(db_number(world.admin, "SELECT fence FROM biz_lock WHERE slot = 2"),
	             (long long)p.next.grant.fence);
	expect(OK, p.b, bizlock_verify(p.b, KEY("k"), "n"));
	expect(NOT_OWNER, p.b, bizlock_verify(p.b, KEY("k"), "a2"));
	expect(OK, p.b, release_as(p.b, "n"));
	expect(OK, p.b, release_as(p.b, "a1"));
	cr_assert_eq(rows_where("owner <> ''"), 0);
	proxy_stop(p.proxy);
}

static void goes_before(struct call *alone, bizlock *other, struct call next[2], bizlock *b)
{
	expect_got(alone);
	cr_assert(!atomic_load(&next[0].done) && !atomic_load(&next[1].done));
	expect(OK, other, release_as(other, "w"));
	for (int i = 0; i < 2; i++) {
		expect_got(&next[i]);
		cr_assert_gt(next[i].grant.fence, alone->grant.fence);
		expect(OK, b, release_as(b, next[i].opts.owner));
	}
}

/* It has slot 0 and waits until both have left. */
Test(shared_handoff, another_client_that_waits_to_be_alone_is_not_kept_out)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call alone, next[2];

	expect(OK, b, try_as(b, "a1", S, 2, NULL));
	expect(OK, b, try_as(b, "a2", S, 2, NULL));
	wait_as(&alone, other, "w", X, 0);
	eventually(rows_where("slot = 0 AND " LIVE) == 1);
	wait_as(&next[0], b, "n0", S, 2);
	wait_for(&next[1], b, "n1", S, 2);
	expect(OK, b, release_as(b, "a1"));
	expect(OK, b, release_as(b, "a2"));
	goes_before(&alone, other, next, b);
}

/* In whichever order they have it. */
static void all_have_their_turn(struct call **calls, int n)
{
	bool given[4] = {false};
	int64_t end = now_ms() + PATIENCE_MS;

	for (int left = n; left > 0;) {
		for (int i = 0; i < n; i++) {
			if (given[i] || !atomic_load(&calls[i]->done))
				continue;
			expect_got(calls[i]);
			expect(OK, calls[i]->b, release_as(calls[i]->b, calls[i]->opts.owner));
			given[i] = true;
			left--;
		}
		cr_assert(pause_before(end), "%d wait for ever", left);
	}
	eventually(rows_where("owner <> ''") == 0);
}

/* False: the transaction that holds the statement up was open for longer than a release waits. */
static bool comes_meanwhile(bizlock *b, bizlock *other)
{
	struct call alone, next[2], release;
	int rc;

	expect(OK, b, try_as(b, "a1", S, 2, NULL));
	expect(OK, b, try_as(b, "a2", S, 2, NULL));
	wait_as(&next[0], b, "n0", S, 2);
	wait_for(&next[1], b, "n1", S, 2);
	call_prepare(&release, b, "k", .owner = "a2");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT * FROM biz_lock WHERE slot = 2 FOR UPDATE");
	call_start_release(&release);
	call_blocks_or_ends(&release);
	wait_as(&alone, other, "w", X, 0);
	eventually(rows_where("slot = 0 AND " LIVE) == 1 || atomic_load(&release.done));
	db_run(world.admin, "COMMIT");
	rc = call_join(&release);
	cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_BUSY, "%s", release.errmsg);
	expect(OK, b, release_as(b, "a1"));
	if (rc == BIZLOCK_OK)
		goes_before(&alone, other, next, b);
	else
		all_have_their_turn((struct call *[]){&alone, &next[0], &next[1]}, 3);
	return rc == BIZLOCK_OK;
}

/* It comes when the statement that passes the slot on has found nobody in slot 0, and waits for the
 * row. Its fence may be the smaller one, so the next one must not have the lock before it. */
Test(shared_handoff, one_that_comes_meanwhile_has_it_first)
{
	bizlock *b = client(NULL), *other = client(NULL);
	int64_t end = now_ms() + PATIENCE_MS;

	db_run(world.admin, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED");
	while (!comes_meanwhile(b, other))
		cr_assert_lt(now_ms(), end, "never in time");
}

Test(shared_handoff, nobody_is_let_past_one_of_the_same_client)
{
	bizlock *b = client(NULL);
	struct call alone, next;

	expect(OK, b, try_as(b, "a", S, 1, NULL));
	wait_for(&alone, b, "w", X, 0);
	wait_for(&next, b, "n", S, 1);
	expect(OK, b, release_as(b, "a"));
	expect_got(&alone);
	steadily(!atomic_load(&next.done), 50);
	expect(OK, b, release_as(b, "w"));
	expect_got(&next);
	expect(OK, b, release_as(b, "n"));
}

/* Another client has one that this client's limit has no room for. */
Test(shared_handoff, no_more_than_its_limit_hold_it)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call next;

	expect(OK, b, try_as(b, "a", S, 1, NULL));
	expect(OK, other, try_as(other, "o", S, 2, NULL));
	wait_for(&next, b, "n", S, 1);
	expect(OK, b, release_as(b, "a"));
	steadily(!atomic_load(&next.done), 200);
	expect(OK, other, release_as(other, "o"));
	expect_got(&next);
	expect(OK, b, release_as(b, "n"));
}

/* Whoever asks for another limit does not get what it has not asked for. */
Test(shared_handoff, those_of_another_limit_ask_the_server)
{
	bizlock *b = client(NULL);
	struct call next;

	expect(OK, b, try_as(b, "a1", S, 2, NULL));
	expect(OK, b, try_as(b, "a2", S, 2, NULL));
	wait_for(&next, b, "n", S, 1);
	expect(OK, b, release_as(b, "a2"));
	steadily(!atomic_load(&next.done), 200);
	expect(OK, b, release_as(b, "a1"));
	expect_got(&next);
	cr_assert_eq(next.grant.slot, 1);
	expect(OK, b, release_as(b, "n"));
}

/* ---- a run of hand-offs ends ------------------------------------------------------------- */

Test(shared_handoff, another_client_has_its_turn_before_a_long_line)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct long_line line;
	int before = 0;

	long_line_begin(&line, b, other, S, 1);
	while (long_line_goes_on(&line, false))
		before++;
	cr_assert_leq(before, RUN);
	expect_got(&line.stranger);
	expect(OK, other, release_as(other, "o"));
	for (; before < LINE; before++)
		long_line_goes_on(&line, true);
}
