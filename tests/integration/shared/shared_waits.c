/* Waiting for a shared lock: woken by releases, in the order of arrival. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_crew.h"
#include "cr_test.h"

TestSuite(shared_waits, .init = world_begin, .fini = world_end, .timeout = 480);

/* Nobody gets anything here by the end of a lease. */
#define LEASE_MS (20u * PATIENCE_MS)

/* Of a turn, each of which takes no longer than a round. */
#define STEPS 6

static int take(bizlock *b, const char *owner, uint32_t flags, uint32_t limit)
{
	return bizlock_acquire(
	        b, KEY("k"),
	        &OPTS(.flags = flags, .limit = limit, .owner = owner, .lease_ms = LEASE_MS), NULL);
}

static int give(bizlock *b, const char *owner)
{
	return bizlock_release(b, KEY("k"), owner, NULL);
}

static void wait_for(struct call *call, bizlock *b, const char *owner, uint32_t flags,
                     uint32_t limit, int64_t wait_ms)
{
	call_prepare(call, b, "k", .wait_ms = wait_ms, .owner = owner);
	call->opts.flags = flags;
	call->opts.limit = limit;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
}

static long long live(int slot_0)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE timeout > UTC_TIMESTAMP(6)"
	                 " AND (slot = 0) = %d",
	                 slot_0);
}

/* It has slot 0, and sleeps until the others leave. */
#define SLEEPERS                                                                                   \
	"SELECT COUNT(*) FROM information_schema.processlist WHERE INFO LIKE 'SELECT IF(%SLEEP%'"  \
	" AND DB = DATABASE() AND ID <> CONNECTION_ID()"

static void is_first_in_line(void)
{
	eventually(db_number(world.admin, "%s", SLEEPERS) == 1);
}

#define SHARED BIZLOCK_SHARED
#define ALONE 0

Test(shared_waits, the_last_of_the_others_wakes_who_wants_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call x;

	expect(OK, b, take(b, "r1", SHARED, 0));
	expect(OK, b, take(b, "r2", SHARED, 0));
	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	cr_assert_eq(live(1), 1);
	expect(OK, b, give(b, "r1"));
	is_first_in_line();
	cr_assert_not(atomic_load(&x.done));
	expect(OK, b, give(b, "r2"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	cr_assert_eq(x.grant.slot, 0);
	expect(OK, other, give(other, "w"));
}

/* One that is not woken sleeps for most of a second. */
#define WAKE_MS 300

/* For how long `other` waits to have the lock alone, in ms, from when the holder leaves it. */
static int64_t waits_behind(bizlock *holder, int (*leaves)(bizlock *), bizlock *other)
{
	int64_t left;
	struct call x;

	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	left = now_ms();
	expect(OK, holder, leaves(holder));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	expect(OK, other, give(other, "w"));
	return x.ended - left;
}

static int gives_slot(bizlock *b)
{
	return give(b, "r");
}

static int64_t waits_behind_sharer(bizlock *b, bizlock *other)
{
	expect(OK, b, take(b, "r", SHARED, 0));
	return waits_behind(b, gives_slot, other);
}

/* Each time it is a client that has never slept in vain: after a few such sleeps it would poll. */
Test(shared_waits, it_is_woken_and_does_not_poll)
{
	enum { TIMES = 6 };
	bizlock *b = client(NULL);
	int64_t waited = 0, rounds = 0;

	for (int i = 0; i < TIMES; i++) {
		rounds += round_ms(b);
		waited += waits_behind_sharer(b, client(NULL));
	}
	cr_assert_lt(waited, TIMES * WAKE_MS + STEPS * rounds, "%lld ms", (long long)waited);
	/* With MariaDB's lock of sleepers a connection of the pool would cost all releases more. */
	cr_assert_eq(db_number(world.admin,
	                       "SELECT COUNT(*) FROM information_schema.processlist WHERE DB = "
	                       "DATABASE() AND ID = IS_USED_LOCK('bizsleep')"),
	             0);
}

static const bizlock_key both[] = {{"test", "k"}, {"test", "k2"}};

static int gives_both(bizlock *b)
{
	return bizlock_release_all(b, both, 2, NULL);
}

/* Again with a client that has never slept in vain. */
Test(shared_waits, a_release_of_several_without_doorbells_wakes_it)
{
	enum { TIMES = 6 };
	const bizlock_acquire_opts opts = OPTS(.flags = BIZLOCK_NO_QUEUE, .lease_ms = LEASE_MS);
	bizlock *holder = client(NULL);
	int64_t waited = 0, rounds = 0;

	for (int i = 0; i < TIMES; i++) {
		rounds += round_ms(holder);
		expect(OK, holder, bizlock_acquire_all(holder, both, 2, &opts, NULL));
		waited += waits_behind(holder, gives_both, client(NULL));
	}
	cr_assert_lt(waited, TIMES * WAKE_MS + STEPS * rounds, "%lld ms", (long long)waited);
}

/* Each time it is a client that has never slept in vain, and so would sleep for a second. */
Test(shared_waits, those_that_leave_together_wake_it)
{
	enum { TIMES = 5 };
	struct crew c;
	int64_t waited = 0, rounds = 0;

	crew_begin(&c, "on");
	c.flags = SHARED;
	for (int i = 0; i < CREW; i++)
		c.wants[i] = "k";
	for (int i = 0; i < TIMES; i++) {
		bizlock *other = client(NULL);
		struct call x;

		crew_releases(&c, false);
		crew_all_together(&c);
		crew_all_are(&c, BIZLOCK_OK);
		wait_for(&x, other, "w", ALONE, 0, -1);
		is_first_in_line();
		crew_releases(&c, true);
		rounds += round_ms(other);
		crew_line_up(&c);
		waited -= now_ms();
		crew_go(&c);
		crew_all_are(&c, BIZLOCK_OK);
		cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
		waited += now_ms();
		expect(OK, other, give(other, "w"));
	}
	cr_assert_lt(waited, TIMES * WAKE_MS + STEPS * rounds, "%lld ms", (long long)waited);
	crew_end(&c);
}

static long long place_ms(void)
{
	return db_number(world.admin,
	                 "SELECT TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout) "
	                 "DIV 1000 FROM biz_lock WHERE slot = 0");
}

static long long place_end(void)
{
	return db_number(world.admin, "SELECT TIMESTAMPDIFF(MICROSECOND, '2000-01-01', timeout) "
	                              "FROM biz_lock WHERE slot = 0");
}

static long long slot_of(const char *owner)
{
	return db_number(world.admin, "SELECT slot FROM biz_lock WHERE owner LIKE '%s@%%'", owner);
}

/* Slots that a client uses again are for those who share without a limit. */
Test(shared_waits, others_take_no_slot_that_is_used_again)
{
	bizlock *b = client(NULL);
	long long slot;

	expect(OK, b, take(b, "s", SHARED, 0));
	slot = slot_of("s");
	expect(OK, b, give(b, "s"));
	expect(OK, b, take(b, "few", SHARED, 2));
	expect(OK, b, give(b, "few"));
	expect(OK, b, take(b, "s", SHARED, 0));
	cr_assert_eq(slot_of("s"), slot);
}

/* Should it die in line, newcomers are kept out for seconds, not for its lease. */
Test(shared_waits, a_place_in_line_is_kept_for_seconds)
{
	bizlock *b = client(NULL), *other = client(NULL);
	long long end;
	struct call x;

	expect(OK, b, take(b, "r", SHARED, 0));
	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	eventually(place_ms() <= 5000);
	end = place_end();
	/* A statement may see a renewal that is younger than its own time. */
	steadily(place_ms() <= 10000, 2000);
	eventually(place_end() > end); /* it is renewed */
	cr_assert_leq(place_ms(), 10000);
	expect(OK, b, give(b, "r"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	cr_assert_gt(place_ms(), 10000);
	cr_assert_gt(bizlock_left_ms(other, KEY("k"), "w"), 10000);
	expect(OK, other, give(other, "w"));
}

/* The reply to one of its statements is lost when it could have the lock, and it is interrupted
 * then. Its row, with whatever fence, becomes a free one or goes. */
Test(shared_waits, one_that_gives_up_leaves_no_row_of_its_own)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client(NULL), *other = client_through(p, OPTIONS("max_connections", "1"));
	bool fired = true;

	for (unsigned packet = 1; fired; packet++) {
		struct fault late = {.what = FAULT_DELAY,
		                     .side = FAULT_REPLIES,
		                     .packet = packet,
		                     .delay_ms = PATIENCE_MS};
		struct call x;

		expect(OK, b, take(b, "r", SHARED, 0));
		wait_for(&x, other, "w", ALONE, 0, -1);
		is_first_in_line();
		proxy_arm(p, &late);
		expect(OK, b, give(b, "r"));
		eventually(proxy_fired(p) || atomic_load(&x.done));
		fired = proxy_fired(p);
		bizlock_interrupt(other);
		proxy_cut(p);
		call_join(&x);
		proxy_arm(p, NULL);
		if (x.rc == BIZLOCK_OK)
			expect(OK, other, give(other, "w"));
		eventually(db_number(world.admin,
		                     "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''") == 0);
	}
	proxy_stop(p);
}

/* On MariaDB it sleeps in another way beside others that sleep, and must not take a wake-up for
 * none: after some of these it would poll, with 50 looks a second. */
Test(shared_waits, beside_others_it_is_woken_and_does_not_poll)
{
	enum { TIMES = 5 };
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL), *holder = client(NULL), *other = client(NULL);
	struct call first, x;
	unsigned before;

	expect(OK, holder,
	       bizlock_acquire(holder, KEY("other"), &OPTS(.flags = SHARED, .lease_ms = LEASE_MS),
	                       NULL));
	call_prepare(&first, other, "other", .wait_ms = -1, .owner = "w");
	first.opts.flags = ALONE;
	call_go(&first);
	is_first_in_line();
	for (int i = 0; i <= TIMES; i++) {
		expect(OK, holder, take(holder, "r", SHARED, 0));
		wait_for(&x, b, "x", ALONE, 0, -1);
		eventually(shared_sleepers(&world) == 2);
		if (i < TIMES) {
			expect(OK, holder, give(holder, "r"));
			cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
			expect(OK, b, give(b, "x"));
		}
	}
	before = proxy_packets(p);
	steadily(!atomic_load(&x.done), 2000);
	cr_assert_lt(proxy_packets(p) - before, 60);
	expect(OK, holder, give(holder, "r"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	expect(OK, holder, bizlock_release(holder, KEY("other"), NULL, NULL));
	cr_assert_eq(call_join(&first), BIZLOCK_OK, "%s", first.errmsg);
	proxy_stop(p);
}

/* A user may not end another one's statement: the first such sleeps are long. */
Test(shared_waits, where_nobody_may_wake_it_it_polls)
{
	enum { TIMES = 30 };
	bizlock *b, *other = client(NULL);
	int64_t waited = 0, rounds = 0;

	db_run(world.admin,
	       "CREATE USER '%s'@'%%' IDENTIFIED BY 'some.Word-7', '%s'@'localhost' IDENTIFIED BY"
	       " 'some.Word-7'; GRANT SELECT, INSERT, UPDATE, DELETE ON %s.* TO '%s'@'%%',"
	       " '%s'@'localhost'",
	       world.schema, world.schema, world.schema, world.schema, world.schema);
	b = client(OPTIONS("user", world.schema, "password", "some.Word-7"));
	for (int i = 0; i < TIMES; i++) {
		rounds += round_ms(other);
		waited += waits_behind_sharer(b, other);
	}
	cr_assert_lt(waited, TIMES * WAKE_MS + STEPS * rounds, "%lld ms", (long long)waited);
	db_run(world.admin, "DROP USER '%s'@'%%', '%s'@'localhost'", world.schema, world.schema);
}

Test(shared_waits, sharers_wait_for_who_has_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call r[3];

	expect(OK, b, take(b, "w", ALONE, 0));
	wait_for(&r[0], other, "r1", SHARED, 0, -1);
	wait_for(&r[1], other, "r2", SHARED, 0, -1);
	wait_for(&r[2], b, "r3", SHARED, 0, -1);
	for (int i = 0; i < 3; i++)
		call_blocks(&r[i]);
	expect(OK, b, give(b, "w"));
	for (int i = 0; i < 3; i++)
		cr_assert_eq(call_join(&r[i]), BIZLOCK_OK, "%s", r[i].errmsg);
	cr_assert_eq(live(0), 3);
}

/* The first of a client takes along those behind it, but not past one that wants it alone. */
Test(shared_waits, those_that_go_in_together_leave_who_wants_it_alone_its_place)
{
	enum { SHARERS = 16 };
	bizlock *b = client(NULL), *other = client(NULL);
	struct call r[SHARERS], x, late;
	char owners[SHARERS][8];

	expect(OK, b, take(b, "w", ALONE, 0));
	for (int i = 0; i < SHARERS; i++) {
		snprintf(owners[i], sizeof(owners[i]), "r%d", i);
		wait_for(&r[i], other, owners[i], SHARED, 0, -1);
		call_blocks(&r[i]);
	}
	wait_for(&x, other, "x", ALONE, 0, -1);
	call_blocks(&x);
	wait_for(&late, other, "late", SHARED, 0, -1);
	call_blocks(&late);
	expect(OK, b, give(b, "w"));
	for (int i = 0; i < SHARERS; i++)
		cr_assert_eq(call_join(&r[i]), BIZLOCK_OK, "%s", r[i].errmsg);
	is_first_in_line();
	cr_assert_not(atomic_load(&x.done) || atomic_load(&late.done));
	for (int i = 0; i < SHARERS; i++)
		expect(OK, other, give(other, owners[i]));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	cr_assert_not(atomic_load(&late.done));
	expect(OK, other, give(other, "x"));
	cr_assert_eq(call_join(&late), BIZLOCK_OK, "%s", late.errmsg);
}

Test(shared_waits, nobody_passes_who_waits_to_have_it_alone)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call x, r[2];

	expect(OK, b, take(b, "r1", SHARED, 0));
	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	expect(BUSY, b, take(b, "late", SHARED, 0));
	wait_for(&r[0], b, "r2", SHARED, 0, -1);
	wait_for(&r[1], other, "r3", SHARED, 0, -1);
	call_blocks(&r[0]);
	call_blocks(&r[1]);
	cr_assert_eq(live(0), 1);
	expect(OK, b, give(b, "r1"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	cr_assert_not(atomic_load(&r[0].done) || atomic_load(&r[1].done));
	expect(OK, other, give(other, "w"));
	cr_assert_eq(call_join(&r[0]), BIZLOCK_OK, "%s", r[0].errmsg);
	cr_assert_eq(call_join(&r[1]), BIZLOCK_OK, "%s", r[1].errmsg);
}

Test(shared_waits, a_slot_that_becomes_free_goes_to_the_first)
{
	bizlock *b = client(NULL), *other = client(NULL), *third = client(NULL);
	struct call r[2];

	expect(OK, b, take(b, "r1", SHARED, 2));
	expect(OK, b, take(b, "r2", SHARED, 2));
	wait_for(&r[0], other, "r3", SHARED, 2, -1);
	is_first_in_line();
	wait_for(&r[1], third, "r4", SHARED, 2, -1);
	call_blocks(&r[1]);
	expect(OK, b, give(b, "r2"));
	cr_assert_eq(call_join(&r[0]), BIZLOCK_OK, "%s", r[0].errmsg);
	cr_assert_eq(r[0].grant.slot, 2);
	is_first_in_line();
	expect(OK, b, give(b, "r1"));
	cr_assert_eq(call_join(&r[1]), BIZLOCK_OK, "%s", r[1].errmsg);
	cr_assert_eq(r[1].grant.slot, 1);
}

Test(shared_waits, who_gives_up_is_in_nobodys_way)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call x;

	expect(OK, b, take(b, "r1", SHARED, 0));
	wait_for(&x, other, "w", ALONE, 0, 300);
	cr_assert_eq(call_join(&x), BIZLOCK_TIMEOUT);
	cr_assert(strstr(x.errmsg, "held by r1@"), "%s", x.errmsg);
	cr_assert_eq(live(1), 0);
	expect(OK, b, take(b, "r2", SHARED, 0));

	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	bizlock_interrupt(other);
	cr_assert_eq(call_join(&x), BIZLOCK_CANCELLED);
	eventually(live(1) == 0);
	expect(OK, b, take(b, "r3", SHARED, 0));
}

/* Its row in slot 0 has to outlast its lease many times. */
Test(shared_waits, a_wait_may_be_longer_than_the_lease)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call x;

	expect(OK, b, take(b, "r1", SHARED, 0));
	call_prepare(&x, other, "k", .wait_ms = -1, .owner = "w");
	x.opts.flags = ALONE;
	x.opts.lease_ms = 3000;
	call_go(&x);
	is_first_in_line();
	for (int64_t end = now_ms() + 7000; now_ms() < end;)
		cr_assert_eq(live(1), 1);
	expect(OK, b, give(b, "r1"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	expect(OK, other, give(other, "w"));
}

Test(shared_waits, without_doorbells_it_works_too)
{
	bizlock *b = client(OPTIONS("queue", "off")), *other = client(OPTIONS("queue", "off"));
	struct call x, r;

	expect(OK, b, take(b, "r1", SHARED, 2));
	wait_for(&x, other, "w", ALONE, 0, -1);
	eventually(live(1) == 1);
	expect(BUSY, b, take(b, "late", SHARED, 2));
	wait_for(&r, b, "r2", SHARED, 2, -1);
	call_blocks(&r);
	expect(OK, b, give(b, "r1"));
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	expect(OK, other, give(other, "w"));
	cr_assert_eq(call_join(&r), BIZLOCK_OK, "%s", r.errmsg);
}

/* A holder whose process has died is waited for, to the end of its lease. */
Test(shared_waits, the_end_of_a_lease_is_noticed)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call x;

	expect(OK, b, take(b, "r1", SHARED, 0));
	wait_for(&x, other, "w", ALONE, 0, -1);
	is_first_in_line();
	db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6) WHERE slot > 0");
	cr_assert_eq(call_join(&x), BIZLOCK_OK, "%s", x.errmsg);
	cr_assert_eq(x.grant.flags, BIZLOCK_TOOK_OVER);
	expect(OK, other, give(other, "w"));
}
