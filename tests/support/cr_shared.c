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

long long rows_where(const char *where)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", where);
}
