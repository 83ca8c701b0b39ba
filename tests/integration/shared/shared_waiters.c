/* What bizlock_waiters() shows of those that wait for sharers to leave, and for who has it alone.
 */
#define _GNU_SOURCE 1
#include "cr_shared.h"

TestSuite(shared_waiters, .init = world_begin, .fini = world_end, .timeout = 240);

struct seen {
	unsigned count, first;
};

static int see(void *arg, const bizlock_waiter *w)
{
	struct seen *s = arg;

	s->count++;
	s->first += w->waited_ms < 0;
	return 0;
}

static bool waiting(bizlock *b, unsigned count, unsigned first)
{
	bizlock_key key = KEY("k");
	struct seen s = {.count = 0};

	expect(OK, b, bizlock_waiters(b, &key, 1, see, &s));
	return s.count == count && s.first == first;
}

static void start(struct call *c, bizlock *b, const char *owner, uint32_t flags, uint32_t limit)
{
	call_prepare(c, b, "k", .wait_ms = -1, .owner = owner);
	c->opts.flags = flags;
	c->opts.limit = limit;
	c->opts.lease_ms = LEASE_MS;
	call_go(c);
}

static void served(struct call *c, bizlock *b, const char *owner)
{
	cr_assert_eq(call_join(c), BIZLOCK_OK, "%s", c->errmsg);
	expect(OK, b, release_as(b, owner));
}

Test(shared_waiters, the_first_in_line_is_seen_and_those_behind_it)
{
	bizlock *holder = client(NULL), *b[] = {client(NULL), client(NULL)};
	struct call alone, sharer;

	expect(OK, holder, try_as(holder, "holder", S, 0, NULL));
	cr_assert(waiting(holder, 0, 0));
	start(&alone, b[0], "alone", X, 0);
	eventually(waiting(holder, 1, 1));
	start(&sharer, b[1], "sharer", S, 0);
	eventually(waiting(holder, 2, 1));
	expect(OK, holder, release_as(holder, "holder"));
	served(&alone, b[0], "alone");
	served(&sharer, b[1], "sharer");
	cr_assert(waiting(holder, 0, 0));
}

Test(shared_waiters, who_waits_for_a_slot_is_seen)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	struct call call;

	expect(OK, holder, try_as(holder, "holder", S, 1, NULL));
	start(&call, b, "next", S, 1);
	eventually(waiting(holder, 1, 1));
	expect(OK, holder, release_as(holder, "holder"));
	served(&call, b, "next");
	cr_assert(waiting(holder, 0, 0));
}
