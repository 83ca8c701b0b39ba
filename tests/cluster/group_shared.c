/* A shared lock at two primaries of a group, one of which has not applied what the other has done.
 */
#define _GNU_SOURCE 1
#include "cr_group.h"

TestSuite(group_shared, .fini = group_end, .timeout = 480);

#define LEASE_MS (20u * PATIENCE_MS)

static void start(struct call *call, bizlock *b, const char *key, uint32_t flags)
{
	call_prepare(call, b, key, .wait_ms = -1, .owner = "late");
	call->opts.flags = flags;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
}

/* Member 0 does not show the other's row, so only a read that waits for it tells. */
static void waits_for_what_is_not_applied(const char *key, uint32_t theirs, uint32_t ours)
{
	bizlock *here = group_client(0), *there = group_client(1);
	MYSQL *hold_up = group_hold_up();
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct call call;

	expect(OK, there,
	       bizlock_acquire(there, KEY(key),
	                       &OPTS(.flags = theirs, .owner = "first", .lease_ms = LEASE_MS),
	                       &grant));
	start(&call, here, key, ours);
	steadily(!atomic_load(&call.done), 500);
	mysql_close(hold_up);
	group_catches_up(1);
	steadily(!atomic_load(&call.done), 500);
	expect(OK, there, bizlock_release(there, KEY(key), "first", NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, grant.fence);
	bizlock_close(here);
	bizlock_close(there);
}

Test(group_shared, nobody_is_beside_who_has_it_alone_at_another_member)
{
	group_begin("--several");
	waits_for_what_is_not_applied("alone-there", 0, BIZLOCK_SHARED);
	waits_for_what_is_not_applied("shared-there", BIZLOCK_SHARED, 0);
}

/* Where the number is drawn before the other's is applied, it is smaller. */
Test(group_shared, who_has_it_alone_gets_a_larger_fence_than_those_at_another_member_had)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *here, *there;
	struct call call;
	MYSQL *hold_up;

	group_begin("--several");
	here = group_client(0);
	there = group_client(1);
	hold_up = group_hold_up();
	for (int i = 0; i < 20; i++) {
		expect(OK, there,
		       bizlock_acquire(there, KEY("gone"),
		                       &OPTS(.flags = BIZLOCK_SHARED, .owner = "first",
		                             .lease_ms = LEASE_MS),
		                       &grant));
		expect(OK, there, bizlock_release(there, KEY("gone"), "first", NULL));
	}
	start(&call, here, "gone", 0);
	steadily(!atomic_load(&call.done), 500);
	mysql_close(hold_up);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_gt(call.grant.fence, grant.fence);
	bizlock_close(here);
	bizlock_close(there);
}
