/* A fenced row can not be renewed while its transaction is open. That must be
 * nobody else's trouble. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(fenced_renewal, .init = tx_world_begin, .fini = tx_world_end, .timeout = 120);

#define HOLDS 50
#define FENCED 17 /* somewhere in the middle of what is due together */
#define LEASE_MS 4500u
#define SOON_MS 10000

static const char *id_of(int i)
{
	static _Thread_local char id[16];

	snprintf(id, sizeof(id), "k%02d", i);
	return id;
}

static unsigned losses_of_others(struct losses *l)
{
	unsigned others = 0;

	for (unsigned i = 0; i < atomic_load(&l->count); i++)
		others += strcmp(l->list[i].id, id_of(FENCED)) != 0;
	return others;
}

static void hold_renewed(bizlock *b, const char *id, uint32_t lease_ms)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = SOON_MS;
	opts.lease_ms = lease_ms;
	expect(OK, b, bizlock_acquire(b, KEY(id), &opts, NULL));
}

static bool others_are_held(bizlock *b)
{
	for (int i = 0; i < HOLDS; i++)
		if (i != FENCED && bizlock_left_ms(b, KEY(id_of(i)), NULL) <= 0)
			return false;
	return true;
}

/* For two leases. What the server shows is looked at as well: a client may
 * believe in less than there is, never in more. */
static void delays_nobody(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue)), *stranger = client(NULL);
	static struct losses losses;
	MYSQL *tx = tx_open();
	int64_t start;

	for (int i = 0; i < HOLDS; i++)
		hold_renewed(b, id_of(i), LEASE_MS);
	losses_watch(&losses, b);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY(id_of(FENCED)), NULL, tx));
	start = now_ms();
	steadily(others_are_held(b), 2 * LEASE_MS);
	works(b);
	cr_assert_eq(losses_of_others(&losses), 0);
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM biz_lock"
	                       " WHERE timeout > UTC_TIMESTAMP(6) AND %s",
	                       "biz_type = 'test'"),
	             HOLDS - 1, "after %lld ms", (long long)(now_ms() - start));
	expect(BUSY, stranger, acquire(stranger, id_of(FENCED), 0, 0, NULL));
	tx_commits(tx, 1);
	for (int i = 0; i < HOLDS; i++)
		if (i != FENCED)
			expect(OK, b, bizlock_release(b, KEY(id_of(i)), NULL, NULL));
	expect(OK, stranger, acquire(stranger, id_of(FENCED), SOON_MS, 0, NULL));
}

TX_TEST(fenced_renewal, of_one_delays_none_of_the_others)
{
	delays_nobody("auto");
}

TX_TEST(fenced_renewal, of_one_delays_none_of_the_others_without_the_queue)
{
	deadlocks_may_happen();
	delays_nobody("off");
}

/* A transaction that is shorter than the lease costs the hold nothing: what could
 * not be renewed while it was open is renewed after it. */
TX_TEST(fenced_renewal, goes_on_after_a_short_transaction)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	hold_renewed(b, "k", 2 * LEASE_MS);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	eventually(row_of(&world, KEY("k")).left_us < 1500 * (long long)LEASE_MS);
	tx_commits(tx, 1);
	steadily(bizlock_left_ms(b, KEY("k"), NULL) > 0, 2 * LEASE_MS);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* Its own holder, out of order: it gives the lock back before its transaction has
 * ended. The row goes when it can. */
TX_TEST(fenced_renewal, is_no_place_where_a_release_hangs)
{
	bizlock *b = client(OPTIONS("io_timeout_ms", "1000")), *stranger = client(NULL);
	MYSQL *tx = tx_open();
	int64_t start;

	hold_renewed(b, "k", LEASE_MS);
	tx_begin(tx, 1);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	start = now_ms();
	(void)bizlock_release(b, KEY("k"), NULL, NULL);
	cr_assert_lt(now_ms() - start, 2000 + SOON_MS,
	             "two network time-outs are what it may take");
	expect(BUSY, stranger, acquire(stranger, "k", 0, 0, NULL));
	tx_commits(tx, 1);
	expect(OK, stranger, acquire(stranger, "k", SOON_MS, 0, NULL));
}
