/* The life of those who hold a shared lock: fenced transactions, losses, re-entry in memory,
 * numbers, fork. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_shared.h"

static struct losses losses;

TestSuite(shared_life, .init = world_begin, .fini = world_end, .timeout = 240);

Test(shared_life, a_sharer_may_commit)
{
	bizlock *b = client(NULL);
	MYSQL *tx = db_open(&world.at, world.schema);

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	expect(OK, b, try_as(b, "r2", S, 0, NULL));
	db_run(tx, "CREATE TABLE ledger (id INT)");
	db_run(tx, "START TRANSACTION; INSERT INTO ledger VALUES (1)");
	expect(OK, b, bizlock_commit(b, KEY("k"), "r", tx));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM ledger"), 1);
	expect(OK, b, release_as(b, "r"));
	expect(OK, b, release_as(b, "r2"));
	mysql_close(tx);
}

/* A sharer's transaction keeps out who comes after its lease, until it ends. */
static void wait_for_a_fence(const char *queue)
{
	bizlock *b = client(NULL), *other = client(OPTIONS("queue", queue));
	MYSQL *tx = db_open(&world.at, world.schema);
	struct call call;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = S, .owner = "r", .lease_ms = 1500),
	                       NULL));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), "r", tx));
	eventually(rows_where(LIVE) == 0);
	expect(BUSY, other, try_as(other, "w", X, 0, NULL));
	expect_message(other, "fenced");
	call_prepare(&call, other, "k", .wait_ms = -1, .owner = "w");
	call.opts.flags = X;
	call.opts.lease_ms = LEASE_MS;
	call_go(&call);
	call_blocks(&call);
	db_run(tx, "COMMIT");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(call.grant.flags, BIZLOCK_TOOK_OVER);

	db_run(tx, "START TRANSACTION");
	expect(LOST, b, bizlock_commit(b, KEY("k"), "r", tx));
	mysql_close(tx);
}

Test(shared_life, who_wants_it_alone_waits_for_a_fence)
{
	wait_for_a_fence("auto");
}

Test(shared_life, without_doorbells_too)
{
	wait_for_a_fence("off");
}

/* The same of one that has it alone. */
Test(shared_life, sharers_wait_for_a_fence)
{
	bizlock *b = client(NULL), *other = client(NULL);
	MYSQL *tx = db_open(&world.at, world.schema);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = X, .owner = "w", .lease_ms = 1500),
	                       NULL));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), "w", tx));
	eventually(rows_where(LIVE) == 0);
	expect(BUSY, other, try_as(other, "r", S, 0, NULL));
	expect(BUSY, other, try_as(other, "r", S, 2, NULL));
	db_run(tx, "ROLLBACK");
	expect(OK, other, try_as(other, "r", S, 2, &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	mysql_close(tx);
}

/* ---- what is lost ------------------------------------------------------------------------ */

static void take_both(void *arg)
{
	expect(OK, arg,
	       bizlock_acquire(arg, KEY("k"), &OPTS(.flags = S, .lease_ms = LEASE_MS), NULL));
	expect(OK, arg,
	       bizlock_acquire(arg, KEY("x"), &OPTS(.flags = X, .lease_ms = LEASE_MS), NULL));
}

/* It stays locked, and is reported. */
Test(shared_life, a_thread_that_ends_has_lost_them)
{
	bizlock *b = client(NULL);

	losses_watch(&losses, b);
	in_another_thread(take_both, b);
	eventually(losses.count == 2);
	expect(BUSY, b, try_as(b, "w", X, 0, NULL));
	cr_assert_eq(rows_where(LIVE), 2);
}

Test(shared_life, a_loss_is_told)
{
	bizlock *b = client(OPTIONS("lease_ms", "1000"));

	losses_watch(&losses, b);
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = BIZLOCK_SHARED, .owner = "a"), NULL));
	db_run(world.admin, "DELETE FROM biz_lock");
	eventually(losses.count == 1);
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), "a"), 0);
	expect(LOST, b, release_as(b, "a"));
}

Test(shared_life, renewed_no_longer_than_that)
{
	bizlock *b = client(OPTIONS("lease_ms", "1000"));

	losses_watch(&losses, b);
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"),
	                       &OPTS(.flags = BIZLOCK_SHARED, .owner = "a", .max_hold_ms = 1500),
	                       NULL));
	eventually(losses.count == 1);
	expect(LOST, b, release_as(b, "a"));
}

Test(shared_life, deeper_in_memory)
{
	bizlock *b = client(NULL);
	const bizlock_acquire_opts opts =
	        OPTS(.flags = S | BIZLOCK_LOCAL_REENTRY, .lease_ms = LEASE_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	cr_assert_eq(grant.depth, 2);
	cr_assert_gt(grant.slot, 0);
	expect(MISUSE, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = X | BIZLOCK_LOCAL_REENTRY), NULL));
	expect(MISUSE, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.flags = BIZLOCK_LOCAL_REENTRY), NULL));
	cr_assert_eq(db_number(world.admin, "SELECT MAX(reentrant) FROM biz_lock"), 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

Test(shared_life, they_are_counted)
{
	bizlock *b = client(NULL);
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	expect(OK, b, try_as(b, "a", S, 0, NULL));
	expect(BUSY, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, release_as(b, "a"));
	expect(OK, b, bizlock_stats(b, &n));
	cr_assert_eq(n.acquired, 1);
	cr_assert_eq(n.busy, 1);
	cr_assert_eq(n.released, 1);
}

Test(shared_life, a_child_holds_nothing)
{
	bizlock *b = client(NULL);
	pid_t child;
	int status;

	expect(OK, b, try_as(b, "a", S, 0, NULL));
	child = fork();
	if (child == 0)
		_exit(release_as(b, "a") == BIZLOCK_MISUSE ? 0 : 1);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	expect(OK, b, bizlock_verify(b, KEY("k"), "a"));
	expect(OK, b, release_as(b, "a"));
}

static uint32_t share_once(bizlock *b, const char *owner)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, try_as(b, owner, S, 0, &grant));
	expect(OK, b, release_as(b, owner));
	return grant.slot;
}

/* Rows that were deleted stay in the index for as long as an old transaction may want to see them,
 * and whoever wants the lock alone reads them all. */
Test(shared_life, a_client_uses_its_slots_again)
{
	bizlock *b = client(NULL);
	uint32_t slot = share_once(b, "r");

	for (int i = 0; i < 20; i++)
		cr_assert_eq(share_once(b, i % 2 ? "r" : "r2"), slot);
}

/* A row that rests has its slot still. */
Test(shared_life, a_slot_that_rests_is_not_used_again)
{
	enum { OWNERS = 20 };
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.flags = S, .min_hold_ms = 600000);
	char owners[OWNERS][8];

	for (int i = 0; i < OWNERS; i++) {
		snprintf(owners[i], sizeof(owners[i]), "o%d", i);
		opts.owner = owners[i];
		expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	}
	for (int i = 0; i < OWNERS; i++)
		expect(OK, b, release_as(b, owners[i]));
	cr_assert_eq(rows_where("slot > 0 AND " LIVE), OWNERS);
	expect(OK, b, try_as(b, "r", S, 0, NULL));
}

Test(shared_life, a_slot_that_somebody_has_is_avoided)
{
	bizlock *b = client(NULL);
	uint32_t slot = share_once(b, "r"), another;

	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, slot, owner, reentrant, timeout,"
	       " gmt_create, gmt_modified) VALUES ('k', 'test', %u, 'x', 1, '2100-01-01',"
	       " '2020-01-01', '2020-01-01')",
	       slot);
	another = share_once(b, "r");
	cr_assert_neq(another, slot);
	cr_assert_eq(share_once(b, "r"), another);
	cr_assert_eq(rows_where("owner = 'x'"), 1);
}
