/* What can be asked of a hold by its fence, from any client; and what a holder knows of its own
 * hold without a round trip. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_shared.h"
#include "cr_test.h"

TestSuite(verifying, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG_MS 600000

static uint64_t take(bizlock *b, const char *owner, uint32_t lease_ms)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, "k", .lease_ms = lease_ms, .owner = owner, .grant = &grant));
	return grant.fence;
}

/* ---- by the fence ------------------------------------------------------------------------ */

Test(verifying, another_client_sees_the_hold_until_its_release)
{
	bizlock *b = client(NULL), *other = client(NULL);
	uint64_t fence = take(b, NULL, LONG_MS);

	expect(OK, other, bizlock_verify_fence(other, KEY("k"), fence));
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), fence));
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), fence - 1));
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), fence + 1));
	expect_message(other, "held by");
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), 0));
	expect(LOST, other, bizlock_verify_fence(other, KEY("other"), fence));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), fence));
	expect_message(other, "nobody has the lock");
}

Test(verifying, a_lease_that_is_over_is_no_hold)
{
	bizlock *b = client(NULL), *other = client(NULL);
	uint64_t fence = take(b, NULL, 200);

	lease_is_over("k");
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), fence));
	expect(LOST, b, bizlock_verify_fence(b, KEY("k"), fence));
}

Test(verifying, nor_is_a_hold_that_was_taken_over)
{
	bizlock *b = client(NULL), *other = client(NULL);
	uint64_t fence = take(b, NULL, 200), next;

	lease_is_over("k");
	next = take(other, NULL, LONG_MS);
	expect(LOST, b, bizlock_verify_fence(b, KEY("k"), fence));
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), next));
}

/* A resting row has the fence of its last holder, and an end in the future. */
Test(verifying, nor_is_a_rest)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = OPTS(.min_hold_ms = LONG_MS);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, &grant));
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), grant.fence));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(row_of(&world, KEY("k")).there);
	expect(LOST, b, bizlock_verify_fence(b, KEY("k"), grant.fence));
}

Test(verifying, nor_is_a_place_in_line)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct call call;
	uint64_t fence;

	expect(OK, b, try_as(b, "r", S, 0, NULL));
	wait_as(&call, other, "alone", X, 0);
	eventually(rows_where("slot = 0 AND owner <> '' AND " LIVE) == 1);
	fence = (uint64_t)db_number(world.admin, "SELECT fence FROM biz_lock WHERE slot = 0");
	expect(LOST, b, bizlock_verify_fence(b, KEY("k"), fence));
	expect(OK, b, release_as(b, "r"));
	expect_got(&call);
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), call.grant.fence));
}

Test(verifying, sharers_are_told_apart)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_grant grants[2] = {BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT};

	expect(OK, b, try_as(b, "r0", S, 2, &grants[0]));
	expect(OK, b, try_as(b, "r1", S, 2, &grants[1]));
	for (int i = 0; i < 2; i++)
		expect(OK, other, bizlock_verify_fence(other, KEY("k"), grants[i].fence));
	expect(OK, b, release_as(b, "r0"));
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), grants[0].fence));
	expect(OK, other, bizlock_verify_fence(other, KEY("k"), grants[1].fence));
}

/* An exported hold is nobody else's. */
Test(verifying, an_exported_hold_stands)
{
	bizlock *b = client(NULL), *other = client(NULL);
	uint64_t fence = take(b, NULL, LONG_MS);
	char text[BIZLOCK_EXPORT_MAX];

	expect(OK, b, bizlock_export(b, KEY("k"), NULL, text, sizeof(text)));
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), fence));
	expect(OK, other, bizlock_import(other, text, NULL, NULL));
	expect(OK, b, bizlock_verify_fence(b, KEY("k"), fence));
}

Test(verifying, a_broken_hold_does_not)
{
	bizlock *b = client(NULL), *other = client(NULL);
	uint64_t fence = take(b, NULL, LONG_MS);

	expect(OK, other, bizlock_break(other, KEY("k"), fence));
	expect(LOST, other, bizlock_verify_fence(other, KEY("k"), fence));
}

Test(verifying, a_forked_child_asks_by_a_client_of_its_own)
{
	bizlock *b = client(NULL);
	uint64_t fence = take(b, NULL, LONG_MS);
	struct peer peer = peer_start(&world, NULL);
	int status;
	pid_t child = fork();

	if (child == 0) {
		int inherited = bizlock_verify_fence(b, KEY("k"), fence);
		bizlock *own = client_open(&world, NULL);
		int rc = bizlock_verify_fence(own, KEY("k"), fence);

		_exit(inherited == BIZLOCK_MISUSE && rc == BIZLOCK_OK ? 0 : 1);
	}
	cr_assert(child > 0);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	peer_end(&peer);
}

Test(verifying, arguments_are_checked)
{
	bizlock *b = client(NULL), *closed = client_new(&world, NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(INVALID, b, bizlock_verify_fence(b, KEY(""), 1));
	expect(MISUSE, closed, bizlock_verify_fence(closed, KEY("k"), 1));
	expect(INVALID, b, bizlock_held(b, KEY("k"), NULL, NULL));
	grant.size = 8;
	expect(INVALID, b, bizlock_held(b, KEY("k"), NULL, &grant));
	expect(MISUSE, closed, bizlock_held(closed, KEY("k"), NULL, &grant));
	bizlock_close(closed);
}

/* ---- without a round trip ---------------------------------------------------------------- */

Test(verifying, a_holder_knows_fence_depth_and_slot)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT, sharer = BIZLOCK_GRANT_INIT;
	uint64_t fence = take(b, NULL, LONG_MS);
	unsigned packets;

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(OK, b,
	       bizlock_acquire(b, KEY("s"), &OPTS(.flags = S, .limit = 3, .owner = "r"), &sharer));
	packets = proxy_packets(p);
	expect(OK, b, bizlock_held(b, KEY("k"), NULL, &grant));
	cr_assert_eq(grant.fence, fence);
	cr_assert_eq(grant.depth, 2);
	cr_assert_eq(grant.lease_ms, LONG_MS);
	cr_assert_eq(grant.slot, 0);
	cr_assert_eq(grant.flags, 0);
	expect(OK, b, bizlock_held(b, KEY("s"), "r", &grant));
	cr_assert_eq(grant.fence, sharer.fence);
	cr_assert_eq(grant.slot, sharer.slot);
	expect(NOT_OWNER, b, bizlock_held(b, KEY("k"), "r", &grant));
	cr_assert_eq(grant.fence, sharer.fence, "written only on OK");
	cr_assert_eq(proxy_packets(p), packets);
	proxy_stop(p);
}

Test(verifying, a_holder_knows_that_its_lease_is_over)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	take(b, NULL, 200);
	eventually(bizlock_left_ms(b, KEY("k"), NULL) <= 0);
	expect(LOST, b, bizlock_held(b, KEY("k"), NULL, &grant));
	lease_is_over("k");
	expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(NOT_OWNER, b, bizlock_held(b, KEY("k"), NULL, &grant));
}

/* ---- who has lost ------------------------------------------------------------------------ */

struct told {
	atomic_uint count;
	char id[BIZLOCK_ID_MAX + 1], owner[BIZLOCK_OWNER_NAME_MAX + 1];
	uint64_t thread, fence;
	size_t size;
};

static void tell(void *arg, const bizlock_loss *loss)
{
	struct told *told = arg;

	snprintf(told->id, sizeof(told->id), "%s", loss->key.biz_id);
	snprintf(told->owner, sizeof(told->owner), "%s", loss->owner ? loss->owner : "");
	told->thread = loss->thread;
	told->fence = loss->fence;
	told->size = loss->size;
	atomic_fetch_add(&told->count, 1);
}

static struct told told;

Test(verifying, a_loss_names_its_owner)
{
	bizlock *b = client(NULL);
	uint64_t fence;

	expect(OK, b, bizlock_on_loss(b, tell, &told));
	fence = take(b, "task-17", 300);
	eventually(told.count == 1);
	cr_assert_str_eq(told.owner, "task-17");
	cr_assert_eq(told.thread, 0);
	cr_assert_eq(told.fence, fence);
	cr_assert_eq(told.size, sizeof(bizlock_loss));
	cr_assert_str_eq(told.id, "k");
	expect(LOST, b, bizlock_release(b, KEY("k"), told.owner, NULL));
	lease_is_over("k");
	take(b, NULL, 300);
	eventually(told.count == 2);
	cr_assert_str_eq(told.owner, "");
	cr_assert_eq(told.thread, (uint64_t)gettid());
}

Test(verifying, one_function_is_told_of_losses)
{
	static struct losses losses;
	bizlock *b = client(NULL);

	expect(OK, b, bizlock_on_loss(b, tell, &told));
	losses_watch(&losses, b); /* by bizlock_on_lost() */
	take(b, "one", 300);
	eventually(losses.count == 1);
	expect(OK, b, bizlock_on_loss(b, tell, &told));
	expect(LOST, b, bizlock_release(b, KEY("k"), "one", NULL));
	lease_is_over("k");
	take(b, "two", 300);
	eventually(told.count == 1);
	cr_assert_eq(losses.count, 1);
	expect(OK, b, bizlock_on_loss(b, NULL, NULL));
}
