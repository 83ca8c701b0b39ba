/* A set whose connection is cut, at each packet. The answer is true, and nothing is left behind. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_ask.h"
#include "cr_keyset.h"

TestSuite(sets_cuts, .init = world_begin, .fini = world_end, .timeout = 480);

#define N 5
#define LEASE_MS 60000
#define WAIT_MS 15000 /* a cut is noticed at once */
/* Of an acquire that polls on and on, only the first packets are cut. They are sent long before its
 * time is up: if a cut came just then, CONN would be as true as TIMEOUT. */
#define PACKETS_MAX 10
#define VAIN_MS 1000

struct cutter {
	struct proxy *proxy;
	bizlock *b, *stranger;
	const char *owner; /* NULL: a thread; else requests by that name */
	struct ask_all set;
	unsigned cuts;
	char where[64]; /* where the cut is */
};

/* A step of a test: what comes before the cut, what is cut, or what is checked afterwards. */
typedef void scenario(struct cutter *c);

static struct cutter cutter_of(const char *queue, const char *owner)
{
	struct cutter c = {.proxy = proxy_start(&world.at, "127.0.0.1"), .owner = owner};

	c.b = client_through(c.proxy, OPTIONS("queue", queue));
	c.stranger = client(OPTIONS("queue", queue));
	return c;
}

static void arm(struct cutter *c, enum fault_side side, unsigned packet, size_t byte)
{
	struct fault fault = {.what = FAULT_CUT, .side = side, .packet = packet, .byte = byte};

	snprintf(c->where, sizeof(c->where), "%s %u, byte %zu",
	         side == FAULT_REQUESTS ? "request" : "reply", packet, byte);
	proxy_arm(c->proxy, &fault);
}

/* Everybody can take all keys at once: no row and no doorbell is left. */
static void is_left_free(struct cutter *c)
{
	cr_assert_eq(rows(), 0, "%s: rows are left", c->where);
	expect(OK, c->stranger, keyset_acquire(c->stranger, &c->set.keys, .wait_ms = WAIT_MS));
	expect(OK, c->stranger, keyset_release(c->stranger, &c->set.keys, NULL));
	expect(OK, c->b, keyset_acquire(c->b, &c->set.keys, .wait_ms = WAIT_MS));
	expect(OK, c->b, keyset_release(c->b, &c->set.keys, NULL));
	cr_assert_eq(rows(), 0, "%s: rows are left at last", c->where);
}

/* At the front, in the middle and at the end of each packet that is seen when
 * nothing is cut. */
static void cut_everywhere(struct cutter *c, scenario *prepare, scenario *act, scenario *check)
{
	struct fault_trace trace;
	unsigned packets[2] = {0, 0};

	for (int warm = 0; warm < 3; warm++) {
		keyset_make(&c->set.keys, N, "k");
		prepare(c);
		proxy_arm(c->proxy, NULL);
		act(c);
		trace = proxy_trace(c->proxy);
		check(c);
		is_left_free(c);
	}
	for (unsigned i = 0; i < trace.count && i < PACKETS_MAX; i++) {
		enum fault_side side = trace.packets[i].side;
		size_t size = trace.packets[i].size, bytes[] = {0, size / 2, size};

		for (int at = 0; at < 3; at++) {
			prepare(c);
			arm(c, side, packets[side], bytes[at]);
			act(c);
			c->cuts += proxy_fired(c->proxy) > 0;
			proxy_arm(c->proxy, NULL);
			check(c);
			is_left_free(c);
		}
		packets[side]++;
	}
	cr_assert_gt(c->cuts, 0, "nothing was cut");
	proxy_stop(c->proxy);
}

#define expect_here(want, c, call)                                                                 \
	do {                                                                                       \
		int got_ = (call);                                                                 \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", (c)->where,        \
		          bizlock_err_name(got_), #want, bizlock_errmsg((c)->b));                  \
	} while (0)

static void nothing(struct cutter *c)
{
	(void)c;
}

static int answer_of(struct ask *a)
{
	dispatch_until(a->b, a->calls > 0);
	cr_assert_eq(a->calls, 1);
	return a->rc;
}

static int acquire_all(struct cutter *c, int64_t wait_ms)
{
	keyset_forget(&c->set.keys);
	if (!c->owner)
		return keyset_acquire(c->b, &c->set.keys, .wait_ms = wait_ms, .lease_ms = LEASE_MS);
	ask_all_for(&c->set, c->b, c->owner, .wait_ms = wait_ms, .lease_ms = LEASE_MS);
	return answer_of(&c->set.ask);
}

static int release_all(struct cutter *c)
{
	if (!c->owner)
		return keyset_release(c->b, &c->set.keys, NULL);
	ask_all_release(&c->set);
	return answer_of(&c->set.ask);
}

static void take(struct cutter *c)
{
	expect_here(OK, c, acquire_all(c, WAIT_MS));
}

static void give(struct cutter *c)
{
	expect_here(OK, c, release_all(c));
}

/* ---- gained ------------------------------------------------------------------- */

static void gained(struct cutter *c)
{
	expect_granted(&c->set.keys, 0);
	expect_held(c->b, &c->set.keys, c->owner, 1);
	give(c);
}

Test(sets_cuts, while_it_is_acquired)
{
	struct cutter c = cutter_of("auto", NULL);

	cut_everywhere(&c, nothing, take, gained);
}

Test(sets_cuts, while_it_is_acquired_by_a_request)
{
	struct cutter c = cutter_of("auto", "task");

	cut_everywhere(&c, nothing, take, gained);
}

Test(sets_cuts, while_it_is_acquired_without_the_queue)
{
	struct cutter c = cutter_of("off", NULL);

	deadlocks_may_happen();
	cut_everywhere(&c, nothing, take, gained);
}

/* ---- some are held already ------------------------------------------------------ */

static void hold_two(struct cutter *c)
{
	expect(OK, c->b,
	       acquire(c->b, c->set.keys.ids[1], .wait_ms = WAIT_MS, .lease_ms = LEASE_MS,
	               .owner = c->owner));
	expect(OK, c->b,
	       acquire(c->b, c->set.keys.ids[3], .wait_ms = WAIT_MS, .lease_ms = LEASE_MS,
	               .owner = c->owner));
}

static void two_are_deeper(struct cutter *c)
{
	uint32_t left;

	for (size_t i = 0; i < N; i++) {
		struct row row = row_of(&world, c->set.keys.keys[i]);
		unsigned depth = i % 2 ? 2 : 1;

		cr_assert_eq(c->set.keys.grants[i].depth, depth, "%s", c->where);
		cr_assert_eq(row.depth, depth, "%s: %s: depth %u", c->where, c->set.keys.ids[i],
		             row.depth);
		cr_assert_eq(row.fence, c->set.keys.grants[i].fence, "%s", c->where);
	}
	give(c);
	cr_assert_eq(rows(), 2, "%s", c->where);
	for (size_t i = 1; i < N; i += 2) {
		expect_here(OK, c, bizlock_release(c->b, c->set.keys.keys[i], c->owner, &left));
		cr_assert_eq(left, 0);
	}
}

Test(sets_cuts, while_some_of_it_are_entered_again)
{
	struct cutter c = cutter_of("auto", NULL);

	cut_everywhere(&c, hold_two, take, two_are_deeper);
}

Test(sets_cuts, while_some_of_it_are_entered_again_by_a_request)
{
	struct cutter c = cutter_of("auto", "task");

	cut_everywhere(&c, hold_two, take, two_are_deeper);
}

/* ---- one is held by another ------------------------------------------------------- */

static void one_is_theirs(struct cutter *c)
{
	hold_two(c);
	expect(OK, c->stranger,
	       acquire(c->stranger, c->set.keys.ids[2], .wait_ms = WAIT_MS, .lease_ms = LEASE_MS));
}

static void take_in_vain(struct cutter *c)
{
	expect_here(TIMEOUT, c, acquire_all(c, VAIN_MS));
}

/* The client has one level of each key as before, and the stranger has its key. */
static void nothing_is_gained(struct cutter *c)
{
	uint32_t left;

	expect_not_granted(&c->set.keys);
	for (size_t i = 1; i < 4; i++)
		cr_assert_eq(row_of(&world, c->set.keys.keys[i]).depth, 1, "%s: %s", c->where,
		             c->set.keys.ids[i]);
	cr_assert_eq(rows(), 3, "%s", c->where);
	for (size_t i = 1; i < N; i += 2) {
		expect_here(OK, c, bizlock_release(c->b, c->set.keys.keys[i], c->owner, &left));
		cr_assert_eq(left, 0, "%s", c->where);
	}
	expect(OK, c->stranger, bizlock_release(c->stranger, c->set.keys.keys[2], NULL, NULL));
}

Test(sets_cuts, while_it_waits_in_vain)
{
	struct cutter c = cutter_of("auto", NULL);

	cut_everywhere(&c, one_is_theirs, take_in_vain, nothing_is_gained);
}

Test(sets_cuts, while_a_request_waits_in_vain)
{
	struct cutter c = cutter_of("auto", "task");

	cut_everywhere(&c, one_is_theirs, take_in_vain, nothing_is_gained);
}

Test(sets_cuts, while_it_polls_in_vain)
{
	struct cutter c = cutter_of("off", NULL);

	deadlocks_may_happen();
	cut_everywhere(&c, one_is_theirs, take_in_vain, nothing_is_gained);
}

/* ---- given back --------------------------------------------------------------------- */

Test(sets_cuts, while_it_is_released)
{
	struct cutter c = cutter_of("auto", NULL);

	cut_everywhere(&c, take, give, nothing);
}

Test(sets_cuts, while_it_is_released_by_a_request)
{
	struct cutter c = cutter_of("auto", "task");

	cut_everywhere(&c, take, give, nothing);
}

static void take_twice(struct cutter *c)
{
	take(c);
	take(c);
}

static void one_level_is_left(struct cutter *c)
{
	expect_held(c->b, &c->set.keys, c->owner, 1);
	give(c);
}

Test(sets_cuts, while_one_level_of_it_is_released)
{
	struct cutter c = cutter_of("auto", NULL);

	cut_everywhere(&c, take_twice, give, one_level_is_left);
}

Test(sets_cuts, while_one_level_of_it_is_released_by_a_request)
{
	struct cutter c = cutter_of("auto", "task");

	cut_everywhere(&c, take_twice, give, one_level_is_left);
}

/* ---- the server does not come back in time ---------------------------------------------- */

/* The client cannot tell whether its rows are there. So no thread of it gets these keys before the
 * rows are certainly gone. */
Test(sets_cuts, what_could_not_be_found_out_is_removed)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b =
	        client_through(p, OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	bizlock *stranger = client(NULL);
	struct keyset s;

	keyset_make(&s, N, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect(OK, b, keyset_release(b, &s, NULL));
	keyset_forget(&s);
	proxy_hold_replies(p, true);
	expect(UNKNOWN, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	expect_not_granted(&s);
	expect_none(b, &s, NULL);
	proxy_hold_replies(p, false);
	expect(OK, stranger,
	       keyset_acquire(stranger, &s, .wait_ms = WAIT_MS, .lease_ms = LEASE_MS));
	expect(OK, stranger, keyset_release(stranger, &s, NULL));
	expect(OK, b, keyset_acquire(b, &s, .wait_ms = WAIT_MS, .lease_ms = LEASE_MS));
	expect(OK, b, keyset_release(b, &s, NULL));
	eventually(rows() == 0);
	proxy_stop(p);
}

Test(sets_cuts, what_could_not_be_released_is_removed_later)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b =
	        client_through(p, OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	struct keyset s;
	int rc;

	keyset_make(&s, N, "k");
	expect(OK, b, keyset_acquire(b, &s, .lease_ms = LEASE_MS));
	proxy_hold_replies(p, true);
	rc = keyset_release(b, &s, NULL);
	cr_assert(rc == BIZLOCK_UNKNOWN || rc == BIZLOCK_CONN, "%s", bizlock_err_name(rc));
	expect_none(b, &s, NULL);
	proxy_hold_replies(p, false);
	eventually(rows() == 0);
	proxy_stop(p);
}

/* ---- taken, and not read ---------------------------------------------------------------- */

static bool is_waiting(const char *like, const char *state)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE DB = '%s'"
	                 " AND INFO LIKE '%s' AND STATE LIKE '%s'",
	                 world.schema, like, state) > 0;
}

/* An ALTER TABLE would come between the two statements in the same way. */
Test(sets_cuts, what_was_taken_and_not_read_is_not_waited_for)
{
	static const char query[] = "LOCK TABLES biz_lock WRITE";
	MYSQL *admin = db_open(&world.at, world.schema);
	bizlock *b = client(NULL);
	struct keyset s;
	struct call call;

	keyset_make(&s, N, "k");
	db_run(world.admin, "INSERT INTO biz_lock (biz_id, biz_type, owner, reentrant, timeout,"
	                    " gmt_create, gmt_modified) VALUES ('k-000', 'test', 'x', 1,"
	                    " '2000-01-01', '2000-01-01', '2000-01-01')");
	db_run(world.admin, "START TRANSACTION");
	db_run(world.admin, "SELECT * FROM biz_lock FOR UPDATE");
	call_start_all(&call, b, &s, .wait_ms = WAIT_MS, .owner = "task-1");
	eventually(is_waiting("%%INSERT INTO `biz_lock`%%", "%%"));
	cr_assert_eq(mysql_send_query(admin, query, sizeof(query) - 1), 0);
	eventually(is_waiting("LOCK TABLES%%", "%%metadata lock%%"));
	db_run(world.admin, "COMMIT");
	cr_assert_eq(mysql_read_query_result(admin), 0);
	steadily(!atomic_load(&call.done), 1500);
	db_run(admin, "UNLOCK TABLES");
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect_held(b, &s, "task-1", 1);
	expect(OK, b, keyset_release(b, &s, "task-1"));
	cr_assert_eq(rows(), 0);
	mysql_close(admin);
}
