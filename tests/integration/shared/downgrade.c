/* An exclusive hold becomes a shared hold, without a gap. */
#define _GNU_SOURCE 1
#include <bizlock_tx.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cr_ask.h"
#include "cr_shared.h"

TestSuite(downgrade, .init = world_begin, .fini = world_end, .timeout = 240);

static int downgrade_as(bizlock *b, const char *owner)
{
	return bizlock_downgrade(b, KEY("k"), owner);
}

Test(downgrade, the_owner_goes_on_as_one_of_many)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT, later = BIZLOCK_GRANT_INIT;
	bizlock_acquire_opts opts = OPTS(.flags = X, .owner = "w", .note = "why");

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	expect(BUSY, other, try_as(other, "r", S, 0, NULL));
	expect(OK, b, downgrade_as(b, "w"));
	cr_assert_eq(rows_where("slot > 0 AND owner LIKE 'w@%' AND reentrant = 1 AND bell = 0 AND "
	                        "note = 'why' AND " LIVE),
	             1);
	cr_assert_eq(
	        rows_where("slot = 0 AND owner = '' AND reentrant = 0 AND bell = 0 AND NOT " LIVE),
	        1);
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(DISTINCT fence) FROM biz_lock"), 1);
	cr_assert_eq(db_number(world.admin, "SELECT MAX(fence) FROM biz_lock"),
	             (long long)grant.fence);
	expect(OK, b, downgrade_as(b, "w"));

	expect(OK, other, try_as(other, "r", S, 0, &later));
	cr_assert_gt(later.fence, grant.fence);
	expect(BUSY, other, try_as(other, "w2", X, 0, NULL));
	expect_message(other, "held by");
	expect(OK, b, bizlock_verify(b, KEY("k"), "w"));
	expect(OK, b, bizlock_renew(b, KEY("k"), "w", 0));
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), "w"), 0);
	expect(MISUSE, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, try_as(b, "w", S, 0, &later));
	cr_assert_eq(later.depth, 2);
	cr_assert_eq(later.fence, grant.fence);
	expect(OK, b, release_as(b, "w"));

	expect(OK, b, release_as(b, "w"));
	expect(BUSY, b, try_as(b, "w", X, 0, NULL));
	expect(OK, other, release_as(other, "r"));
	expect(OK, b, try_as(b, "w", X, 0, &later));
	cr_assert_gt(later.fence, grant.fence);
	expect(OK, b, release_as(b, "w"));
}

Test(downgrade, all_levels_are_shared)
{
	bizlock *b = client(NULL), *other = client(NULL);

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, try_as(b, "w", S, 0, NULL));
	expect(OK, b, downgrade_as(b, "w"));
	cr_assert_eq(rows_where("slot > 0 AND reentrant = 3"), 1);
	expect(OK, other, try_as(other, "r", S, 0, NULL));
	for (int level = 3; level > 0; level--) {
		expect(BUSY, other, try_as(other, "w2", X, 0, NULL));
		expect(OK, b, release_as(b, "w"));
	}
	expect(NOT_OWNER, b, release_as(b, "w"));
	expect(OK, other, release_as(other, "r"));
	cr_assert_eq(rows_where(LIVE), 0);
}

Test(downgrade, it_counts_where_the_lock_has_a_limit)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(OK, b, downgrade_as(b, "w"));
	expect(BUSY, other, try_as(other, "r1", S, 1, NULL));
	expect(OK, other, try_as(other, "r2", S, 2, &grant));
	cr_assert_eq(grant.slot, 2);
	expect(BUSY, other, try_as(other, "r3", S, 2, NULL));
	expect(OK, b, release_as(b, "w"));
	expect(OK, other, try_as(other, "r3", S, 2, NULL));
}

/* A sharer that came too late, and is about to leave. */
Test(downgrade, a_slot_that_somebody_has_is_avoided)
{
	bizlock *b = client(NULL);

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, slot, owner, reentrant, timeout, "
	       "bell, note, gmt_create, gmt_modified) SELECT biz_id, biz_type, 1, "
	       "'late@1.0011223344556677@x', 1, timeout, 0, '', gmt_create, gmt_modified "
	       "FROM biz_lock");
	expect(OK, b, downgrade_as(b, "w"));
	cr_assert_eq(rows_where("slot > 1 AND owner LIKE 'w@%'"), 1);
	cr_assert_eq(rows_where("slot = 1 AND owner LIKE 'late@%'"), 1);
	cr_assert_eq(rows_where("slot = 0 AND owner = ''"), 1);
}

Test(downgrade, only_the_owner_may)
{
	bizlock *b = client(NULL), *other = client(NULL);

	expect(NOT_OWNER, b, downgrade_as(b, "w"));
	expect(OK, b, try_as(b, "w", X, 0, NULL));
	expect(NOT_OWNER, b, downgrade_as(b, "w2"));
	expect(NOT_OWNER, other, downgrade_as(other, "w"));
	db_run(world.admin, "DELETE FROM biz_lock");
	expect(LOST, b, downgrade_as(b, "w"));
	cr_assert_eq(rows_where("TRUE"), 0);
	expect(LOST, b, release_as(b, "w"));
}

Test(downgrade, what_a_transaction_has_fenced_stays_exclusive)
{
	bizlock *b = client(NULL), *other = client(NULL);
	MYSQL *tx = db_open(&world.at, world.schema);

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_fence(b, KEY("k"), "w", tx));
	expect(BUSY, b, downgrade_as(b, "w"));
	expect_message(b, "fenced");
	expect(BUSY, other, try_as(other, "r", S, 0, NULL));
	db_run(tx, "COMMIT");
	expect(OK, b, downgrade_as(b, "w"));
	db_run(tx, "START TRANSACTION");
	expect(OK, b, bizlock_commit(b, KEY("k"), "w", tx));
	mysql_close(tx);
}

Test(downgrade, it_is_renewed_and_rests_as_it_would_have)
{
	bizlock *b = client(OPTIONS("lease_ms", "1000")), *other = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "w", .min_hold_ms = 3600000);

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	expect(OK, b, downgrade_as(b, "w"));
	pause_ms(2000);
	expect(OK, b, bizlock_verify(b, KEY("k"), "w"));
	expect(OK, b, release_as(b, "w"));
	expect(BUSY, other, try_as(other, "w", X, 0, NULL));
	expect_message(other, "resting");
}

/* ---- those who wait ------------------------------------------------------------------------ */

static void sharers_come_in(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue)), *other = client(OPTIONS("queue", queue));
	static const char *const names[] = {"r1", "r2", "r3", "r4"};
	struct call calls[4], last;

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	for (unsigned i = 0; i < 4; i++)
		wait_as(&calls[i], i % 2 ? b : other, names[i], S, i < 2 ? 0 : 9);
	for (unsigned i = 0; i < 4; i++)
		call_blocks(&calls[i]);
	expect(OK, b, downgrade_as(b, "w"));
	for (unsigned i = 0; i < 4; i++)
		expect_got(&calls[i]);
	wait_as(&last, other, "w2", X, 0);
	call_blocks(&last);
	for (unsigned i = 0; i < 4; i++)
		expect(OK, i % 2 ? b : other, release_as(i % 2 ? b : other, names[i]));
	call_blocks(&last);
	expect(OK, b, release_as(b, "w"));
	expect_got(&last);
}

Test(downgrade, sharers_that_wait_come_in)
{
	sharers_come_in("auto");
}

Test(downgrade, sharers_that_poll_come_in)
{
	sharers_come_in("off");
}

/* They stand in the client's wait queue, behind its own hold. */
Test(downgrade, requests_of_the_same_client_come_in)
{
	static const char *const names[] = {"r1", "r2", "r3"};
	bizlock *b = client(NULL);
	struct ask asks[3];

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	for (unsigned i = 0; i < 3; i++)
		ask_for(&asks[i], b, "k", names[i], .wait_ms = -1, .flags = S);
	for (int64_t end = now_ms() + 500; now_ms() < end;)
		dispatch_once(b);
	for (unsigned i = 0; i < 3; i++)
		cr_assert_eq(asks[i].calls, 0);
	expect(OK, b, downgrade_as(b, "w"));
	for (unsigned i = 0; i < 3; i++)
		ask_ends(OK, &asks[i]);
}

Test(downgrade, who_wants_it_alone_and_was_first_is_not_passed)
{
	bizlock *b = client(NULL), *other = client(NULL), *third = client(NULL);
	struct call alone, sharer;

	expect(OK, b, try_as(b, "w", X, 0, NULL));
	wait_as(&alone, other, "w2", X, 0);
	call_blocks(&alone);
	wait_as(&sharer, third, "r", S, 0);
	call_blocks(&sharer);
	expect(OK, b, downgrade_as(b, "w"));
	call_blocks(&alone);
	call_blocks(&sharer);
	expect(OK, b, release_as(b, "w"));
	expect_got(&alone);
	call_blocks(&sharer);
	expect(OK, other, release_as(other, "w2"));
	expect_got(&sharer);
}

/* ---- a storm --------------------------------------------------------------------------------- */

enum { WRITERS = 8, ROUNDS = 12 };

static atomic_int inside, version, wrong;

struct writer {
	pthread_t thread;
	bizlock *b;
	char owner[8];
	uint64_t fence;
};

/* What it has written exclusively nobody changes until it has stopped sharing. */
static void write_and_read(struct writer *w)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = -1, .owner = w->owner, .lease_ms = LEASE_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int mine;

	expect(OK, w->b, bizlock_acquire(w->b, KEY("k"), &opts, &grant));
	wrong += atomic_fetch_add(&inside, 1) != 0 || grant.fence <= w->fence;
	w->fence = grant.fence;
	mine = atomic_fetch_add(&version, 1) + 1;
	atomic_fetch_sub(&inside, 1);
	expect(OK, w->b, downgrade_as(w->b, w->owner));
	for (int i = 0; i < 3; i++) {
		wrong += atomic_load(&version) != mine;
		pause_ms(1);
	}
	wrong += atomic_load(&version) != mine;
	expect(OK, w->b, release_as(w->b, w->owner));
}

static void *write_rounds(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		write_and_read(arg);
	return NULL;
}

static void storm(bizlock *const clients[3])
{
	struct writer writers[WRITERS] = {0};

	for (unsigned i = 0; i < WRITERS; i++) {
		writers[i].b = clients[i % 3];
		snprintf(writers[i].owner, sizeof(writers[i].owner), "w%u", i);
		pthread_create(&writers[i].thread, NULL, write_rounds, &writers[i]);
	}
	for (unsigned i = 0; i < WRITERS; i++)
		pthread_join(writers[i].thread, NULL);
	cr_assert_eq(atomic_load(&wrong), 0);
	cr_assert_eq(atomic_load(&version), WRITERS * ROUNDS);
}

Test(downgrade, there_is_no_gap)
{
	bizlock *clients[] = {client(NULL), client(NULL), client(NULL)};
	long long deadlocks;

	deadlocks_are_counted();
	deadlocks = db_deadlocks(world.admin);
	storm(clients);
	cr_assert_eq(db_deadlocks(world.admin), deadlocks);
}

Test(downgrade, nor_where_some_poll)
{
	bizlock *clients[] = {client(NULL), client(OPTIONS("queue", "off")),
	                      client(OPTIONS("queue", "off"))};

	deadlocks_may_happen();
	storm(clients);
}
