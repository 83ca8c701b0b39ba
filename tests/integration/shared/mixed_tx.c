/* Fenced transactions under a lock that some share, and others wait for to have it alone. */
#define _GNU_SOURCE 1
#include "cr_shared.h"
#include "cr_tx.h"

TestSuite(mixed_tx, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

/* A transaction of this snapshot that has written `id`. */
static MYSQL *begun(int id)
{
	MYSQL *tx = tx_open();

	tx_begin(tx, id);
	return tx;
}

static int commit(bizlock *b, const char *owner, MYSQL *tx)
{
	return bizlock_commit(b, KEY("k"), owner, tx);
}

/* ---- who may commit ------------------------------------------------------------------------ */

Test(mixed_tx, one_that_has_it_alone_commits_while_both_kinds_wait)
{
	bizlock *b = client(NULL), *others[] = {client(NULL), client(NULL)};
	struct call calls[2];

	expect(OK, b, try_as(b, "holder", X, 0, NULL));
	wait_as(&calls[0], others[0], "alone", X, 0);
	eventually(doorbell_waiters(&world) == 1);
	wait_as(&calls[1], others[1], "sharer", S, 0);
	eventually(doorbell_waiters(&world) == 2);
	expect(OK, b, commit(b, "holder", begun(1)));
	cr_assert(ledger_has(1));
	cr_assert(!atomic_load(&calls[0].done) && !atomic_load(&calls[1].done));
	expect(OK, b, release_as(b, "holder"));
	for (int i = 0; i < 2; i++) {
		expect_got(&calls[i]);
		expect(OK, others[i], commit(others[i], calls[i].opts.owner, begun(2 + i)));
		cr_assert(ledger_has(2 + i));
		expect(OK, others[i], release_as(others[i], calls[i].opts.owner));
	}
}

/* The place in line is a row with an owner, and no hold. */
Test(mixed_tx, sharers_commit_beside_a_place_in_line)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	MYSQL *tx;

	expect(OK, b, try_as(b, "r0", S, 0, NULL));
	expect(OK, b, try_as(b, "r1", S, 0, NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	expect(OK, b, commit(b, "r0", begun(1)));
	cr_assert(ledger_has(1));
	expect(OK, b, release_as(b, "r0"));
	tx = begun(2);
	expect(NOT_OWNER, b, commit(b, "r0", tx));
	nothing_is_left_of(tx, 2);
	expect(OK, b, commit(b, "r1", begun(3)));
	cr_assert(ledger_has(3));
	cr_assert_not(atomic_load(&call.done));
	expect(OK, b, release_as(b, "r1"));
	expect_got(&call);
	expect(OK, other, commit(other, "alone", begun(4)));
	cr_assert(ledger_has(4));
}

/* Its fence keeps the lock from those who wait, until the transaction ends. */
Test(mixed_tx, a_sharer_that_has_fenced_is_waited_for_past_its_lease)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	MYSQL *tx;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = S, .owner = "r", .lease_ms = busy_lease_ms(b, 2000)),
	                       NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	tx = begun(1);
	expect(OK, b, bizlock_fence(b, KEY("k"), "r", tx));
	eventually(rows_where("slot > 0 AND " LIVE) == 0);
	steadily(!atomic_load(&call.done), 500);
	tx_commits(tx, 1);
	expect_got(&call);
	cr_assert_eq(call.grant.flags, BIZLOCK_TOOK_OVER);
	tx = begun(2);
	expect(LOST, b, commit(b, "r", tx));
	nothing_is_left_of(tx, 2);
	expect(OK, other, commit(other, "alone", begun(3)));
	cr_assert(ledger_has(3));
}

/* Without a doorbell of the holder's the sharer that waits is first in line, and has the doorbell.
 * It reads slot 0, and does not wait for the transaction's lock. */
Test(mixed_tx, a_sharer_does_not_touch_what_another_owner_has_fenced)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;
	struct call call;
	MYSQL *tx;

	expect(OK, b, try_as(b, "alone", X | BIZLOCK_NO_QUEUE, 0, NULL));
	tx = begun(1);
	expect(OK, b, bizlock_fence(b, KEY("k"), "alone", tx));
	wait_as(&call, other, "r", S, 0);
	eventually(shared_sleepers(&world) == 1);
	steadily(!atomic_load(&call.done), 2500);
	expect(OK, other, bizlock_stats(other, &n));
	cr_assert_eq(n.retried_conflict, 0);
	tx_commits(tx, 1);
	expect(OK, b, release_as(b, "alone"));
	expect_got(&call);
}

/* ---- who may not --------------------------------------------------------------------------- */

static void cannot_commit(bizlock *b, const char *owner, MYSQL *tx, int id)
{
	expect(LOST, b, commit(b, owner, tx));
	nothing_is_left_of(tx, id);
}

Test(mixed_tx, a_sharer_that_is_stale_cannot_commit)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	MYSQL *tx;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	tx = begun(1);
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE slot > 0");
	expect_got(&call);
	cr_assert_eq(call.grant.flags, BIZLOCK_TOOK_OVER);
	cannot_commit(b, "r", tx, 1);
	expect(OK, other, release_as(other, "alone"));
	cannot_commit(b, "r", begun(2), 2);
}

Test(mixed_tx, a_sharer_that_is_broken_cannot_commit)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct call call;
	MYSQL *tx;

	expect(OK, b, try_as(b, "r", S, 0, &grant));
	expect(OK, b, try_as(b, "r2", S, 0, NULL));
	tx = begun(1);
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	expect(OK, other, bizlock_break(other, KEY("k"), grant.fence));
	cannot_commit(b, "r", tx, 1);
	expect(OK, b, commit(b, "r2", begun(2)));
	expect(OK, b, release_as(b, "r2"));
	expect_got(&call);
}

Test(mixed_tx, one_that_had_it_alone_and_is_stale_cannot_commit)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	MYSQL *tx;

	expect(OK, b, try_as(b, "alone", X, 0, NULL));
	tx = begun(1);
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6)");
	expect(OK, other, try_as(other, "r", S, 0, &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cannot_commit(b, "alone", tx, 1);
	expect(OK, other, commit(other, "r", begun(2)));
	cr_assert(ledger_has(2));
}

/* The snapshot shows its place, with its name, and not what the sharers have written since. */
Test(mixed_tx, a_transaction_of_before_the_grant_is_stale_although_the_place_was_there)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	MYSQL *tx;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	tx = begun(1);
	expect(OK, b, commit(b, "r", begun(2)));
	expect(OK, b, release_as(b, "r"));
	expect_got(&call);
	expect(STALE, other, commit(other, "alone", tx));
	nothing_is_left_of(tx, 1);
	expect(OK, other, commit(other, "alone", begun(3)));
	cr_assert(ledger_has(2) && ledger_has(3));
}
