/* Threads of one client hand a lock on, while another client wants it in the other way. */
#define _GNU_SOURCE 1
#include "cr_shared.h"

TestSuite(mixed_handoff, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- a line that was there before ---------------------------------------------------------- */

Test(mixed_handoff, one_that_wants_it_alone_has_its_turn_before_a_long_line_of_sharers)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct long_line line;
	int before = 0;

	long_line_begin(&line, b, other, X, 0);
	while (long_line_goes_on(&line, false))
		before++;
	cr_assert_leq(before, RUN);
	expect_got(&line.stranger);
	cr_assert_gt(line.stranger.grant.fence, line.fence);
	expect(OK, other, release_as(other, "o"));
	for (; before < LINE; before++) {
		long_line_goes_on(&line, true);
		cr_assert_gt(line.fence, line.stranger.grant.fence);
	}
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

/* ---- a line that comes again and again ----------------------------------------------------- */

enum { CREW = 8, TURNS = 10 };

struct crew {
	bizlock *b;
	uint32_t flags, limit;
	atomic_int inside, beside; /* of the crew; and how often the stranger was among them */
	atomic_bool stranger, stop;
	atomic_uint turns;
	pthread_t threads[CREW];
};

static void *take_turns(void *arg)
{
	struct crew *c = arg;
	const bizlock_acquire_opts opts =
	        OPTS(.wait_ms = -1, .flags = c->flags, .limit = c->limit, .lease_ms = LEASE_MS);

	while (!atomic_load(&c->stop)) {
		if (bizlock_acquire(c->b, KEY("k"), &opts, NULL) != BIZLOCK_OK)
			die("a turn: %s", bizlock_errmsg(c->b));
		atomic_fetch_add(&c->inside, 1);
		if (atomic_load(&c->stranger))
			atomic_fetch_add(&c->beside, 1);
		atomic_fetch_add(&c->turns, 1);
		atomic_fetch_sub(&c->inside, 1);
		if (bizlock_release(c->b, KEY("k"), NULL, NULL) != BIZLOCK_OK)
			die("a release: %s", bizlock_errmsg(c->b));
	}
	return NULL;
}

static void crew_begin(struct crew *c, uint32_t flags, uint32_t limit)
{
	*c = (struct crew){.b = client(NULL), .flags = flags, .limit = limit};
	for (int i = 0; i < CREW; i++)
		if (pthread_create(&c->threads[i], NULL, take_turns, c) != 0)
			die("no thread");
}

static void crew_end(struct crew *c)
{
	atomic_store(&c->stop, true);
	for (int i = 0; i < CREW; i++)
		pthread_join(c->threads[i], NULL);
	cr_assert_eq(atomic_load(&c->beside), 0);
	cr_assert_eq(rows_where("owner <> ''"), 0);
}

static void others_have_their_turn(uint32_t flags, uint32_t limit, uint32_t wanted)
{
	bizlock *other = client(NULL);
	struct crew c;

	crew_begin(&c, flags, limit);
	for (int i = 0; i < TURNS; i++) {
		unsigned before = atomic_load(&c.turns);

		eventually(atomic_load(&c.turns) > before);
		expect(OK, other,
		       bizlock_acquire(other, KEY("k"),
		                       &OPTS(.wait_ms = PATIENCE_MS, .flags = wanted, .owner = "o",
		                             .lease_ms = LEASE_MS),
		                       NULL));
		atomic_store(&c.stranger, true);
		cr_assert_eq(atomic_load(&c.inside), 0);
		pause_ms(5);
		cr_assert_eq(atomic_load(&c.inside), 0);
		atomic_store(&c.stranger, false);
		expect(OK, other, release_as(other, "o"));
	}
	crew_end(&c);
}

Test(mixed_handoff, a_sharer_has_its_turn)
{
	others_have_their_turn(X, 0, S);
}

Test(mixed_handoff, one_that_wants_it_alone_has_its_turn)
{
	others_have_their_turn(S, 2, X);
}

Test(mixed_handoff, one_that_wants_it_alone_has_its_turn_among_any_number)
{
	others_have_their_turn(S, 0, X);
}
