/* A shared lock that goes from one client to another. */
#define _GNU_SOURCE 1
#include "cr_shared.h"

TestSuite(shared_handover, .init = world_begin, .fini = world_end, .timeout = 240);

static bizlock_grant import(bizlock *b, const char *text)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_import(b, text, "heir", &grant));
	return grant;
}

static void export(bizlock *b, char text[BIZLOCK_EXPORT_MAX])
{
	expect(OK, b, bizlock_export(b, KEY("k"), "giver", text, BIZLOCK_EXPORT_MAX));
	expect(NOT_OWNER, b, bizlock_verify(b, KEY("k"), "giver"));
}

Test(shared_handover, the_slot_goes_along)
{
	bizlock *giver = client(NULL), *heir = client(NULL);
	bizlock_grant first = BIZLOCK_GRANT_INIT, second = BIZLOCK_GRANT_INIT, got;
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, giver, try_as(giver, "another", S, 2, &first));
	expect(OK, giver, try_as(giver, "giver", S, 2, &second));
	cr_assert_eq(second.slot, 2);
	export(giver, text);
	expect(BUSY, heir, try_as(heir, "third", S, 2, NULL));
	got = import(heir, text);
	cr_assert(got.slot == 2 && got.fence == second.fence && got.depth == 1 && got.flags == 0);
	expect(LOST, giver, bizlock_import(giver, text, "late", NULL));
	expect(OK, heir, bizlock_verify(heir, KEY("k"), "heir"));
	expect(OK, heir, bizlock_renew(heir, KEY("k"), "heir", LEASE_MS));
	expect(BUSY, heir, try_as(heir, "third", S, 2, NULL));
	expect(OK, giver, bizlock_verify(giver, KEY("k"), "another"));
	expect(OK, heir, release_as(heir, "heir"));
	expect(OK, heir, try_as(heir, "third", S, 2, &got));
	cr_assert_eq(got.slot, 2);
}

/* Those that wait are woken by the heir, which has no doorbell. */
static void is_handed_over(bizlock *giver, bizlock *heir, bizlock *waiter, uint32_t mode,
                           uint32_t wanted)
{
	bizlock_grant had = BIZLOCK_GRANT_INIT, got;
	char text[BIZLOCK_EXPORT_MAX];
	struct call call;

	expect(OK, giver, try_as(giver, "giver", mode, 0, &had));
	call_prepare(&call, waiter, "k", .wait_ms = -1, .owner = "late");
	call.opts.flags = wanted;
	call.opts.lease_ms = LEASE_MS;
	call_go(&call);
	call_blocks(&call);
	export(giver, text);
	got = import(heir, text);
	cr_assert(got.slot == had.slot && got.fence == had.fence);
	call_blocks(&call);
	expect(OK, heir, release_as(heir, "heir"));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, got.fence);
	expect(OK, waiter, release_as(waiter, "late"));
}

Test(shared_handover, nobody_gets_beside_it)
{
	bizlock *giver = client(NULL), *heir = client(NULL), *waiter = client(NULL);

	is_handed_over(giver, heir, waiter, X, S);
	is_handed_over(giver, heir, waiter, X, X);
	is_handed_over(giver, heir, waiter, S, X);
}

/* The heir may share what it has alone. */
Test(shared_handover, the_mode_goes_along)
{
	bizlock *giver = client(NULL), *heir = client(NULL);
	bizlock_grant got = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, giver, try_as(giver, "giver", X, 0, NULL));
	expect(OK, giver, try_as(giver, "giver", X, 0, NULL));
	export(giver, text);
	cr_assert_eq(import(heir, text).depth, 2);
	expect(OK, heir, try_as(heir, "heir", S, 0, &got));
	cr_assert_eq(got.depth, 3);
	expect(BUSY, giver, try_as(giver, "sharer", S, 0, NULL));
}

Test(shared_handover, the_row_must_be_there_still)
{
	bizlock *giver = client(NULL), *heir = client(NULL);
	bizlock_grant had = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, giver, try_as(giver, "giver", S, 0, &had));
	export(giver, text);
	expect(OK, heir, bizlock_break(heir, KEY("k"), had.fence));
	expect(LOST, heir, bizlock_import(heir, text, "heir", NULL));
	expect(NOT_OWNER, heir, bizlock_verify(heir, KEY("k"), "heir"));
}
