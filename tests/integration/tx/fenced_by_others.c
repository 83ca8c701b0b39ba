/* bizlock_tx_verify_fence(): a transaction of a client that was told the fence, and does not hold
 * the lock itself. */
#define _GNU_SOURCE 1
#include "cr_shared.h"
#include "cr_tx.h"

TestSuite(fenced_by_others, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define LONG_MS 600000

static uint64_t take(bizlock *b, uint32_t lease_ms)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, "k", .lease_ms = lease_ms, .grant = &grant));
	return grant.fence;
}

static int fence_by(bizlock *b, uint64_t fence, MYSQL *tx)
{
	return bizlock_tx_verify_fence(b, KEY("k"), fence, tx);
}

TX_TEST(fenced_by_others, nobody_takes_over_before_it_ends)
{
	bizlock *holder = client(NULL), *helper = client(NULL), *other = client(NULL);
	uint64_t fence = take(holder, busy_lease_ms(holder, 1000));
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect(OK, helper, fence_by(helper, fence, tx));
	lease_is_over("k");
	expect(BUSY, other, acquire(other, "k"));
	tx_commits(tx, 1);
	expect(OK, other, acquire(other, "k", .wait_ms = -1));
}

TX_TEST(fenced_by_others, a_hold_that_is_over_is_lost)
{
	bizlock *holder = client(NULL), *helper = client(NULL), *other = client(NULL);
	uint64_t fence = take(holder, 200);
	MYSQL *tx = tx_open();

	lease_is_over("k");
	tx_begin(tx, 1);
	expect(LOST, helper, fence_by(helper, fence, tx));
	take(other, LONG_MS);
	expect(LOST, helper, fence_by(helper, fence, tx));
	expect(LOST, helper, fence_by(helper, 0, tx));
	cr_assert(tx_is_open(tx));
}

TX_TEST(fenced_by_others, a_rest_is_not_held)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.min_hold_ms = LONG_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	MYSQL *tx = tx_open();

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	tx_begin(tx, 1);
	expect(LOST, b, fence_by(b, grant.fence, tx));
}

TX_TEST(fenced_by_others, a_snapshot_from_before_the_grant_is_stale)
{
	bizlock *holder = client(NULL), *helper = client(NULL);
	MYSQL *tx = tx_open();
	uint64_t fence;
	int rc;

	tx_begin(tx, 1);
	fence = take(holder, LONG_MS);
	rc = fence_by(helper, fence, tx);
	cr_assert_eq(rc, tx_way == TX_READ_COMMITTED ? BIZLOCK_OK : BIZLOCK_STALE);
}

TX_TEST(fenced_by_others, a_sharers_fence_counts_too)
{
	bizlock *b = client(NULL), *helper = client(NULL);
	bizlock_grant grants[2] = {BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT};
	MYSQL *tx = tx_open();

	expect(OK, b, try_as(b, "r0", S, 2, &grants[0]));
	expect(OK, b, try_as(b, "r1", S, 2, &grants[1]));
	expect(OK, b, release_as(b, "r0"));
	tx_begin(tx, 1);
	expect(LOST, helper, fence_by(helper, grants[0].fence, tx));
	expect(OK, helper, fence_by(helper, grants[1].fence, tx));
	tx_commits(tx, 1);
}

/* Its renewals meet the locked row, and do not take that for a loss. */
TX_TEST(fenced_by_others, the_holders_own_client_knows_that_the_row_is_locked)
{
	bizlock *b = client(NULL);
	uint64_t fence;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	MYSQL *tx = tx_open();

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LONG_MS, .grant = &grant));
	fence = grant.fence;
	tx_begin(tx, 1);
	expect(OK, b, fence_by(b, fence, tx));
	expect(BUSY, b, bizlock_renew(b, KEY("k"), NULL, 0));
	tx_commits(tx, 1);
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
}

Test(fenced_by_others, what_is_no_transaction_is_misuse)
{
	bizlock *b = client(NULL);
	uint64_t fence = take(b, LONG_MS);
	MYSQL *tx = tx_open();

	expect(MISUSE, b, fence_by(b, fence, tx));
	expect(INVALID, b, fence_by(b, fence, NULL));
	expect(INVALID, b, bizlock_tx_verify_fence(b, KEY(""), fence, tx));
}
