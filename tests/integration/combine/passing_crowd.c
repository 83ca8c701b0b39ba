/* Many threads of a client pass a lock on, while other clients want it, too. */
#define _GNU_SOURCE 1
#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(passing_crowd, .init = world_begin, .fini = world_end, .timeout = 480);

#define LEASE_MS 60000
#define RUN_MAX 17    /* turns that a client may have before others get theirs, */
#define RUN_MS 250    /* and for how long: on a slow machine there are more runs */
#define RUN_PACKETS 4 /* between two runs: a release, an acquisition, a late fence, a look */

#define CREW 8
#define TURNS 40 /* of each thread */

struct crew {
	bizlock *b;
	unsigned turns;
	uint64_t fence;
	int inside, wrong;
	_Atomic unsigned all;
	atomic_bool stop;
	pthread_t threads[CREW];
};

/* One turn. The holder checks that it is alone; the lock alone protects the counts. */
static int turn(struct crew *c)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int rc = acquire(c->b, "k", .wait_ms = -1, .lease_ms = LEASE_MS, .grant = &grant);

	if (rc != BIZLOCK_OK)
		return rc;
	c->wrong += c->inside++ != 0;
	c->wrong += grant.fence <= c->fence || grant.depth != 1 || grant.flags != 0;
	c->fence = grant.fence;
	c->inside--;
	atomic_fetch_add(&c->all, 1);
	return bizlock_release(c->b, KEY("k"), NULL, NULL);
}

static void *take_turns(void *arg)
{
	struct crew *c = arg;

	for (unsigned i = 0; i < c->turns && !atomic_load(&c->stop); i++)
		if (turn(c) != BIZLOCK_OK)
			die("a turn: %s", bizlock_errmsg(c->b));
	return NULL;
}

static void crew_begin(struct crew *c, bizlock *b, unsigned turns)
{
	memset(c, 0, sizeof(*c));
	c->b = b;
	c->turns = turns;
	for (int i = 0; i < CREW; i++)
		if (pthread_create(&c->threads[i], NULL, take_turns, c) != 0)
			die("no thread");
}

static void crew_end(struct crew *c)
{
	for (int i = 0; i < CREW; i++)
		pthread_join(c->threads[i], NULL);
	cr_assert_eq(c->wrong, 0);
	cr_assert(no_row(&world, KEY("k")));
}

Test(passing_crowd, takes_one_statement)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_numbers n = numbers_of(b);
	struct crew c;
	unsigned sent, runs;
	int64_t start;

	works(b);
	n = numbers_of(b);
	proxy_arm(p, NULL);
	start = now_ms();
	crew_begin(&c, b, TURNS);
	crew_end(&c);
	sent = proxy_packets(p);
	runs = (unsigned)((now_ms() - start) / RUN_MS);
	cr_assert_lt(sent, CREW * TURNS * 3 / 2 + RUN_PACKETS * runs,
	             "%u packets for %d turns, %u runs", sent, CREW * TURNS, runs);
	expect_moved(b, &n, "acquired+320 released+320 waits+320");
	proxy_stop(p);
}

/* The stranger waits at the doorbell each time. Its look at the row may come between two holders;
 * then it looks once more. Where processors are busy, it may come too late now and then, but not
 * each time. */
Test(passing_crowd, lets_others_have_their_turn)
{
	enum { ROUNDS = 10 };
	bizlock *b = client(NULL), *stranger = client(NULL);
	unsigned late = 0;
	struct crew c;

	crew_begin(&c, b, UINT32_MAX);
	for (int i = 0; i < ROUNDS; i++) {
		struct call call;
		unsigned before, turns;

		call_start(&call, stranger, "k", .wait_ms = -1, .owner = "stranger");
		eventually(doorbell_waiters(&world) == 1 || atomic_load(&call.done));
		before = atomic_load(&c.all);
		cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
		turns = atomic_load(&c.all) - before;
		expect(OK, stranger, bizlock_release(stranger, KEY("k"), "stranger", NULL));
		late += turns > 2 * RUN_MAX;
	}
	atomic_store(&c.stop, true);
	crew_end(&c);
	cr_assert_leq(late, ROUNDS / 2);
}
