/* A batch meets rows whose holders have no doorbell: only the rows tell that they are held. */
#include "bizlock_tx.h"
#include "cr_crew.h"

TestSuite(combining_rows, .init = world_begin, .fini = world_end, .timeout = 240);

#define N CREW
#define ROUNDS 8
#define LEASE_MS 60000

static void stranger_holds(struct crew *c, int i, uint32_t flags)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.flags = flags;
	opts.lease_ms = LEASE_MS;
	expect(OK, c->stranger, bizlock_acquire(c->stranger, KEY(c->ids[i]), &opts, NULL));
}

static void hold_without_a_doorbell(struct crew *c, int i)
{
	stranger_holds(c, i, BIZLOCK_NO_QUEUE);
}

static void all_but_this_one(const struct crew *c, int one)
{
	for (int i = 0; i < N; i++)
		cr_assert_eq(c->calls[i].rc, i == one ? BIZLOCK_BUSY : BIZLOCK_OK, "%d: %s", i,
		             c->calls[i].errmsg);
}

Test(combining_rows, what_is_held_without_a_doorbell_is_busy)
{
	struct crew c;
	struct row before, after;

	crew_begin(&c, "on");
	for (int i = 0; i < N; i += N - 1) { /* the first and the last one of the INSERT */
		hold_without_a_doorbell(&c, i);
		before = row_of(&world, KEY(c.ids[i]));
		c.wait_ms = 0;
		crew_all_together(&c);
		all_but_this_one(&c, i);
		for (int j = 0; j < N; j++)
			if (j != i)
				cr_assert_eq(row_of(&world, KEY(c.ids[j])).fence,
				             c.calls[j].grant.fence);
		after = row_of(&world, KEY(c.ids[i]));
		cr_assert_eq(after.fence, before.fence);
		cr_assert_str_eq(after.owner, before.owner);
		expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[i]), NULL, NULL));
		crew_release_held(&c);
	}
	crew_end(&c);
}

/* The INSERT would wait for such a row, a second each time, and all others with it. */
Test(combining_rows, what_is_fenced_delays_nobody)
{
	struct crew c;
	MYSQL *tx = db_open(&world.at, world.schema);
	int64_t took = 0, rounds = 0;

	crew_begin(&c, "on");
	hold_without_a_doorbell(&c, 3);
	db_run(tx, "START TRANSACTION");
	expect(OK, c.stranger, bizlock_fence(c.stranger, KEY(c.ids[3]), NULL, tx));
	c.wait_ms = 0;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t start;

		rounds += round_ms(c.stranger);
		crew_line_up(&c);
		start = now_ms();
		crew_go(&c);
		took += now_ms() - start;
		all_but_this_one(&c, 3);
		crew_release_held(&c);
	}
	cr_assert_lt(took, ROUNDS * 750 + 4 * rounds, "%lld ms, and %lld for rounds",
	             (long long)took, (long long)rounds);
	db_run(tx, "ROLLBACK");
	mysql_close(tx);
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[3]), NULL, NULL));
	crew_end(&c);
}

/* The owner's own row, which an acquisition without an answer may have left: its lease began
 * earlier, and its fence may be older than that of somebody who had the lock since. */
Test(combining_rows, an_own_row_that_was_left_is_not_taken_for_a_new_one)
{
	struct crew c;
	struct row left;

	crew_begin(&c, "on");
	expect(OK, c.b, acquire_as(c.b, c.ids[2], c.owners[2]));
	left = row_of(&world, KEY(c.ids[2]));
	expect(OK, c.b, bizlock_release(c.b, KEY(c.ids[2]), c.owners[2], NULL));
	db_run(world.admin,
	       "INSERT INTO biz_lock (biz_id, biz_type, fence, owner, reentrant, timeout, note, "
	       "gmt_create, gmt_modified) VALUES ('%s', '%s', %llu, '%s', 1, "
	       "UTC_TIMESTAMP(6) + INTERVAL 3 SECOND, '', UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
	       c.ids[2], KEY("").biz_type, (unsigned long long)left.fence, left.owner);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	cr_assert_gt(c.calls[2].grant.fence, left.fence);
	cr_assert_eq(row_of(&world, KEY(c.ids[2])).fence, c.calls[2].grant.fence);
	crew_releases(&c, true);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_end(&c);
}

/* ---- at any distance -------------------------------------------------------------------- */

static void all_have_the_fences_of_their_rows(const struct crew *c)
{
	crew_all_are(c, BIZLOCK_OK);
	for (int i = 0; i < N; i++) {
		long long fence = db_number(world.admin,
		                            "SELECT fence FROM biz_lock WHERE %s AND owner <> ''",
		                            row_where(KEY(c->ids[i])));

		cr_assert_eq(c->calls[i].grant.fence, (uint64_t)fence);
	}
}

/* Numbers are drawn as in a cluster, where several servers do so by turns. */
static void begin_at_a_distance(struct crew *c, const char *settings, uint32_t flags)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");

	proxy_replace(p, "max_sort_length = 1024, group_concat_max_len = 1024", settings);
	crew_begin_by(c, p, OPTIONS("max_connections", "1", "combine", "on"));
	cr_assert_gt(proxy_replaced(p), 0);
	if (flags)
		crew_shares(c);
}

/* Nothing is read behind the rows: the batch takes no more packets than any other. */
static void goes_in(struct crew *c, unsigned packets)
{
	unsigned before;

	crew_line_up(c);
	before = proxy_packets(c->proxy);
	crew_go(c);
	all_have_the_fences_of_their_rows(c);
	crew_sent(c, before, packets);
	crew_release_held(c);
}

/* Where a batch went in vain, the next one goes in two packets. */
static void goes_at_once_and_in_two(uint32_t flags, uint32_t in_way)
{
	struct crew c;

	begin_at_a_distance(&c, "auto_increment_increment=7, auto_increment_offset=3", flags);
	goes_in(&c, 1);
	stranger_holds(&c, 0, in_way);
	c.wait_ms = 0;
	crew_all_together(&c);
	all_but_this_one(&c, 0);
	crew_release_held(&c);
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[0]), NULL, NULL));
	goes_in(&c, 2);
	crew_end(&c);
}

Test(combining_rows, fences_may_be_at_any_distance)
{
	goes_at_once_and_in_two(0, BIZLOCK_NO_QUEUE);
}

Test(combining_rows, fences_of_sharers_may_be_at_any_distance)
{
	goes_at_once_and_in_two(BIZLOCK_SHARED, 0);
}

/* Where the offset is larger than the increment, one distance is smaller: that at the offset. */
Test(combining_rows, fences_need_not_be_at_one_distance)
{
	struct crew c;

	begin_at_a_distance(&c, "auto_increment_increment=7,auto_increment_offset=99", 0);
	db_run(world.admin, "ALTER TABLE biz_lock AUTO_INCREMENT = 70");
	crew_all_together(&c);
	all_have_the_fences_of_their_rows(&c);
	crew_release_held(&c);
	crew_end(&c);
}
