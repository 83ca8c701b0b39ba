/* What those who look after locks see and break of a lock that some share, and others wait for to
 * have it alone. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_findings.h"
#include "cr_shared.h"

TestSuite(mixed_ops, .init = world_begin, .fini = world_end, .timeout = 240);

#define PLACE_MS 5000

/* ---- broken -------------------------------------------------------------------------------- */

Test(mixed_ops, a_sharer_that_is_broken_makes_way)
{
	bizlock *b = client(NULL), *other = client(NULL), *op = client(NULL);
	bizlock_grant r[2] = {BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT};
	struct call call;

	expect(OK, b, try_as(b, "r0", S, 0, &r[0]));
	expect(OK, b, try_as(b, "r1", S, 0, &r[1]));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	expect(OK, op, bizlock_break(op, KEY("k"), r[0].fence));
	steadily(!atomic_load(&call.done), 200);
	expect(OK, b, bizlock_verify(b, KEY("k"), "r1"));
	expect(OK, op, bizlock_break(op, KEY("k"), r[1].fence));
	expect_got(&call);
	cr_assert_gt(call.grant.fence, r[0].fence);
	cr_assert_gt(call.grant.fence, r[1].fence);
	expect(LOST, b, release_as(b, "r0"));
	expect(LOST, b, release_as(b, "r1"));
	expect(OK, other, bizlock_verify(other, KEY("k"), "alone"));
	expect(OK, other, release_as(other, "alone"));
}

Test(mixed_ops, one_that_has_it_alone_and_is_broken_makes_way)
{
	bizlock *b = client(NULL), *others[] = {client(NULL), client(NULL)}, *op = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct call calls[2];

	expect(OK, b, try_as(b, "alone", X, 0, &grant));
	wait_as(&calls[0], others[0], "r0", S, 0);
	wait_as(&calls[1], others[1], "r1", S, 2);
	eventually(doorbell_waiters(&world) == 2);
	expect(OK, op, bizlock_break(op, KEY("k"), grant.fence));
	for (int i = 0; i < 2; i++) {
		expect_got(&calls[i]);
		cr_assert_gt(calls[i].grant.fence, grant.fence);
		expect(OK, others[i], bizlock_verify(others[i], KEY("k"), calls[i].opts.owner));
	}
	expect(LOST, b, release_as(b, "alone"));
	expect(BUSY, b, try_as(b, "alone", X, 0, NULL));
	for (int i = 0; i < 2; i++)
		expect(OK, others[i], release_as(others[i], calls[i].opts.owner));
}

/* The place in line is a row like others. Its owner takes it again. */
Test(mixed_ops, a_place_in_line_that_is_broken_gives_nobody_the_lock)
{
	bizlock *b = client(NULL), *other = client(NULL), *op = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct call call;
	uint64_t place;

	expect(OK, b, try_as(b, "r", S, 0, &grant));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	place = (uint64_t)db_number(world.admin, "SELECT fence FROM biz_lock WHERE slot = 0");
	expect(OK, op, bizlock_break(op, KEY("k"), place));
	expect(OK, b, bizlock_verify(b, KEY("k"), "r"));
	steadily(!atomic_load(&call.done), 500);
	expect(OK, b, release_as(b, "r"));
	expect_got(&call);
	cr_assert_gt(call.grant.fence, grant.fence);
	cr_assert_gt(call.grant.fence, place);
	expect(OK, other, bizlock_verify(other, KEY("k"), "alone"));
	expect(BUSY, b, try_as(b, "r", S, 0, NULL));
	expect(OK, other, release_as(other, "alone"));
}

/* ---- listed -------------------------------------------------------------------------------- */

struct seen {
	unsigned sharers, others; /* rows of both kinds */
	bizlock_info other;       /* the last one that is not a sharer's, */
	char owner[192];          /* and its owner */
	uint32_t limits;          /* of the sharers, the sum */
};

static int see(void *arg, const bizlock_info *info)
{
	struct seen *s = arg;

	if (info->flags == BIZLOCK_SHARED) {
		s->sharers++;
		s->limits += info->limit;
		cr_assert(info->slot > 0 && info->depth > 0 && info->left_ms > PLACE_MS);
		return 0;
	}
	s->others++;
	s->other = *info;
	snprintf(s->owner, sizeof(s->owner), "%s", info->owner);
	return 0;
}

/* Each of the two calls shows the same. */
static struct seen look(bizlock *b)
{
	struct seen all = {0}, one = {0};

	expect(OK, b, bizlock_each(b, "test", see, &all));
	expect(OK, b, bizlock_look(b, KEY("k"), see, &one));
	cr_assert(all.sharers == one.sharers && all.others == one.others);
	return one;
}

Test(mixed_ops, a_place_in_line_is_listed_as_one)
{
	bizlock *b = client(NULL), *other = client(NULL), *op = client(NULL);
	struct call call;
	struct seen s;

	expect(OK, b, try_as(b, "r0", S, 3, NULL));
	expect(OK, b, try_as(b, "r1", S, 3, NULL));
	s = look(op);
	cr_assert(s.sharers == 2 && s.limits == 6 && s.others == 0);
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	s = look(op);
	cr_assert(s.sharers == 2 && s.others == 1);
	cr_assert(strncmp(s.owner, "alone@", 6) == 0, "%s", s.owner);
	cr_assert(s.other.flags == 0 && s.other.depth == 0 && s.other.slot == 0);
	cr_assert_leq(s.other.left_ms, PLACE_MS);

	expect(OK, b, release_as(b, "r0"));
	expect(OK, b, release_as(b, "r1"));
	expect_got(&call);
	s = look(op);
	cr_assert(s.sharers == 0 && s.others == 1);
	cr_assert(s.other.flags == 0 && s.other.depth == 1 && s.other.slot == 0);
	cr_assert_eq(s.other.fence, call.grant.fence);
	cr_assert_gt(s.other.left_ms, PLACE_MS);
	expect(OK, other, release_as(other, "alone"));
	s = look(op);
	cr_assert(s.sharers == 0 && s.others == 0);
}

Test(mixed_ops, a_place_in_line_that_is_given_up_is_listed_no_more)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct seen s;
	struct call call;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	bizlock_interrupt(other);
	cr_assert_eq(call_join(&call), BIZLOCK_CANCELLED, "%s", call.errmsg);
	eventually(rows_where("slot = 0 AND owner <> ''") == 0);
	s = look(b);
	cr_assert(s.sharers == 1 && s.others == 0);
}

/* One that rests is shown, and belongs to nobody. */
Test(mixed_ops, a_rest_is_listed_without_an_owner)
{
	bizlock *b = client(NULL);
	struct seen s;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	expect(OK, b, release_as(b, "r"));
	expect(OK, b,
	       bizlock_acquire(b, KEY("k"), &OPTS(.lease_ms = LEASE_MS, .min_hold_ms = 600000),
	                       NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	s = look(b);
	cr_assert(s.sharers == 0 && s.others == 1);
	cr_assert_str_eq(s.owner, "");
	cr_assert_gt(s.other.left_ms, 0);
}

/* ---- limits -------------------------------------------------------------------------------- */

/* One that waits to have it alone names no limit, and is not counted as one that does. */
Test(mixed_ops, limits_do_not_differ_by_one_that_waits)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call calls[2];
	struct findings f;

	expect(OK, b, try_as(b, "r0", S, 3, NULL));
	expect(OK, b, try_as(b, "r1", S, 3, NULL));
	wait_as(&calls[0], other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	wait_as(&calls[1], client(NULL), "r2", S, 5);
	eventually(doorbell_waiters(&world) == 1);
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "limits", BIZLOCK_GOOD, "one limit");
	expect(OK, b, release_as(b, "r0"));
	expect(OK, b, release_as(b, "r1"));
	expect_got(&calls[0]);
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "limits", BIZLOCK_GOOD, "one limit");
	expect(OK, other, release_as(other, "alone"));
	expect_got(&calls[1]);
}

Test(mixed_ops, limits_that_differ_are_told_beside_one_that_waits)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	struct findings f;

	expect(OK, b, try_as(b, "r0", S, 3, NULL));
	expect(OK, b, try_as(b, "r1", S, 4, NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(shared_sleepers(&world) == 1);
	f = doctor_of(&world, NULL, BIZLOCK_OK);
	expect_finding(&f, "limits", BIZLOCK_WARN, "test/k is held with limits from 3 to 4");
	expect(OK, b, release_as(b, "r0"));
	expect(OK, b, release_as(b, "r1"));
	expect_got(&call);
}
