/* One of the keys is held already, and fenced by a transaction that is open. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "call.h"
#include "cr_tx.h"
#include "patience.h"

TestSuite(sets_fenced, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define LEASE_MS 2000u
#define LONG_MS 60000u

static struct keyset keys;

/* key-001 is the owner's, and fenced. */
static MYSQL *fence_second(bizlock *b, uint32_t lease_ms)
{
	bizlock_acquire_opts opts =
	        OPTS(.wait_ms = -1, .lease_ms = lease_ms, .flags = 0, .owner = "x");
	MYSQL *tx = tx_open();

	keyset_make(&keys, 2, "key");
	expect(OK, b, bizlock_acquire(b, keys.keys[1], &opts, NULL));
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, keys.keys[1], "x", tx));
	return tx;
}

/* It is busy all the while, and renewed nevertheless. */
Test(sets_fenced, the_others_levels_in_memory_are_renewed_meanwhile)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = -1, .lease_ms = LEASE_MS,
	                                 .flags = BIZLOCK_LOCAL_REENTRY, .owner = "x");
	bizlock *b = client(NULL);
	MYSQL *tx = fence_second(b, LONG_MS);
	struct call call;

	expect(OK, b, bizlock_acquire(b, keys.keys[0], &opts, NULL));
	call_start_all(&call, b, &keys, .wait_ms = 3 * LEASE_MS, .owner = "x");
	cr_assert_eq(call_join(&call), BIZLOCK_TIMEOUT, "%s", call.errmsg);
	expect(OK, b, bizlock_verify(b, keys.keys[0], "x"));
	tx_close(tx);
}

/* What is new is not renewed before the set is complete. */
Test(sets_fenced, one_that_was_given_back_by_another_thread_is_not_told_as_held_when_it_is_over)
{
	bizlock_acquire_opts other = OPTS(.wait_ms = -1, .lease_ms = LONG_MS, .owner = "y");
	bizlock *b = client(OPTIONS("lease_ms", "2000"));
	MYSQL *tx = fence_second(b, LONG_MS);
	struct call call;

	expect(OK, b, bizlock_acquire(b, keys.keys[0], &other, NULL));
	call_start_all(&call, b, &keys, .wait_ms = LONG_MS, .owner = "x");
	call_blocks(&call);
	expect(OK, b, bizlock_release(b, keys.keys[0], "y", NULL));
	pause_ms(2 * LEASE_MS);
	tx_close(tx);
	if (call_join(&call) == BIZLOCK_OK)
		expect(OK, b, bizlock_verify(b, keys.keys[0], "x"));
	else
		cr_assert_eq(call.rc, BIZLOCK_LOST, "%s", call.errmsg);
}

/* Of a single key: the hold is given back by another thread while this one waits to go deeper. */
Test(sets_fenced, one_released_meanwhile_is_acquired_anew)
{
	bizlock *b = client(NULL);
	MYSQL *tx = fence_second(b, LONG_MS);
	struct call call;

	call_prepare(&call, b, "unused", .wait_ms = LONG_MS, .owner = "x");
	call.key = keys.keys[1];
	call_go(&call);
	call_blocks(&call);
	expect(BUSY, b, bizlock_release(b, keys.keys[1], "x", NULL));
	tx_close(tx);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(call.grant.depth, 1);
}
