#include "cr_shared.h"

int try_as(bizlock *b, const char *owner, uint32_t flags, uint32_t limit, bizlock_grant *ret)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = 0;
	opts.lease_ms = LEASE_MS;
	opts.flags = flags;
	opts.limit = limit;
	opts.owner = owner;
	return bizlock_acquire(b, KEY("k"), &opts, ret);
}

int release_as(bizlock *b, const char *owner)
{
	return bizlock_release(b, KEY("k"), owner, NULL);
}

void wait_as(struct call *call, bizlock *b, const char *owner, uint32_t flags, uint32_t limit)
{
	call_prepare(call, b, "k", .wait_ms = -1, .owner = owner);
	call->opts.flags = flags;
	call->opts.limit = limit;
	call->opts.lease_ms = LEASE_MS;
	call_go(call);
}

void expect_got(struct call *call)
{
	cr_assert_eq(call_join(call), BIZLOCK_OK, "%s: %s", call->opts.owner, call->errmsg);
}

long long rows_where(const char *where)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", where);
}
