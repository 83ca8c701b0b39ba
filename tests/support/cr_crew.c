#define _GNU_SOURCE 1
#include "cr_crew.h"

#include <stdio.h>

/* So that the one connection is there, and its statements are prepared. */
static void warm_up(bizlock *b, uint32_t flags)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.flags = flags;
	for (int i = 0; i < 2; i++) {
		expect(OK, b, bizlock_acquire(b, KEY("warm"), &opts, NULL));
		expect(OK, b, bizlock_release(b, KEY("warm"), NULL, NULL));
	}
}

void crew_begin_by(struct crew *c, struct proxy *p, const char *const *options)
{
	memset(c, 0, sizeof(*c));
	c->proxy = p;
	c->b = client_through(p, options);
	c->stranger = client(NULL);
	c->wait_ms = CREW_WAIT_MS;
	warm_up(c->b, 0);
	warm_up(c->b, BIZLOCK_NO_QUEUE);
	for (int i = 0; i < CREW; i++) {
		snprintf(c->ids[i], sizeof(c->ids[i]), "k-%d", i);
		snprintf(c->owners[i], sizeof(c->owners[i]), "o-%d", i);
		c->wants[i] = c->ids[i];
	}
}

void crew_begin_with(struct crew *c, const char *const *options)
{
	crew_begin_by(c, proxy_start(&world.at, "127.0.0.1"), options);
}

void crew_begin(struct crew *c, const char *combine)
{
	crew_begin_with(c, OPTIONS("max_connections", "1", "combine", combine));
}

void crew_shares(struct crew *c)
{
	c->flags = BIZLOCK_SHARED;
	for (int i = 0; i < CREW; i++) {
		expect(OK, c->b,
		       bizlock_acquire(c->b, KEY(c->wants[i]), &OPTS(.flags = BIZLOCK_SHARED),
		                       NULL));
		expect(OK, c->b, bizlock_release(c->b, KEY(c->wants[i]), NULL, NULL));
	}
}

void crew_releases(struct crew *c, bool release)
{
	for (int i = 0; i < CREW; i++)
		c->release[i] = release;
}

void crew_line_up(struct crew *c)
{
	proxy_hold_replies(c->proxy, true);
	call_start(&c->occupant, c->b, "occupant", .wait_ms = CREW_WAIT_MS, .owner = "o");
	call_blocks(&c->occupant);
	crew_start(c);
}

void crew_start(struct crew *c)
{
	for (int i = 0; i < CREW; i++) {
		if (c->release[i]) {
			call_start_release(&c->calls[i]);
		} else {
			call_prepare(&c->calls[i], c->b, c->wants[i], .wait_ms = c->wait_ms,
			             .owner = c->owners[i]);
			c->calls[i].opts.flags = c->flags;
			call_go(&c->calls[i]);
		}
		call_blocks(&c->calls[i]);
	}
}

void crew_occupant_leaves(struct crew *c)
{
	cr_assert_eq(call_join(&c->occupant), BIZLOCK_OK, "%s", c->occupant.errmsg);
	expect(OK, c->b, bizlock_release(c->b, KEY("occupant"), "o", NULL));
}

void crew_go(struct crew *c)
{
	proxy_hold_replies(c->proxy, false);
	for (int i = 0; i < CREW; i++)
		call_join(&c->calls[i]);
	crew_occupant_leaves(c);
}

void crew_all_together(struct crew *c)
{
	crew_line_up(c);
	crew_go(c);
}

void crew_all_are(const struct crew *c, int rc)
{
	for (int i = 0; i < CREW; i++)
		cr_assert_eq(c->calls[i].rc, rc, "%d: %s: %s", i, bizlock_err_name(c->calls[i].rc),
		             c->calls[i].errmsg);
}

void crew_release_held(struct crew *c)
{
	for (int i = 0; i < CREW; i++)
		if (c->calls[i].rc == BIZLOCK_OK)
			expect(OK, c->b,
			       bizlock_release(c->b, KEY(c->wants[i]), c->owners[i], NULL));
}

void crew_breaks(const struct crew *c, int i)
{
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY(c->ids[i])));
}

void crew_end(struct crew *c)
{
	struct keyset s;

	keyset_make(&s, CREW, "k");
	for (size_t i = 0; i < CREW; i++)
		s.keys[i].biz_id = c->ids[i];
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''"), 0);
	expect(OK, c->stranger, keyset_acquire(c->stranger, &s));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE bell <> 0"), CREW);
	expect(OK, c->stranger, keyset_release(c->stranger, &s, NULL));
	proxy_stop(c->proxy);
}

void crew_sent(const struct crew *c, unsigned before, unsigned packets)
{
	unsigned sent = proxy_packets(c->proxy) - before - 2, again = sent - packets;
	bool alone = packets >= CREW;

	cr_assert(sent >= packets &&
	                  (again <= 1 || (again == 2 && c->release[0]) || (alone && again <= CREW)),
	          "%u packets, not %u", sent, packets);
}
