#define _GNU_SOURCE 1
#include "cr_shared.h"

#include <stdio.h>

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

void long_line_begin(struct long_line *l, bizlock *b, bizlock *other, uint32_t flags,
                     uint32_t limit)
{
	*l = (struct long_line){.b = b};
	expect(OK, b, try_as(b, "a", S, 1, NULL));
	for (int i = 0; i < LINE; i++) {
		snprintf(l->owners[i], sizeof(l->owners[i]), "n%d", i);
		wait_as(&l->calls[i], b, l->owners[i], S, 1);
		call_blocks(&l->calls[i]);
	}
	eventually(shared_sleepers(&world) == 1);
	wait_as(&l->stranger, other, "o", flags, limit);
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, release_as(b, "a"));
}

/* NULL: the stranger has it. */
static struct call *next_holder(struct long_line *l, bool has_left)
{
	for (int64_t end = now_ms() + PATIENCE_MS; pause_before(end);) {
		for (int i = 0; i < LINE; i++)
			if (!l->released[i] && atomic_load(&l->calls[i].done))
				return &l->calls[i];
		if (!has_left && atomic_load(&l->stranger.done))
			return NULL;
	}
	die("nobody has it");
}

bool long_line_goes_on(struct long_line *l, bool has_left)
{
	struct call *holder = next_holder(l, has_left);

	if (!holder)
		return false;
	expect_got(holder);
	l->released[holder - l->calls] = true;
	l->fence = holder->grant.fence;
	expect(OK, l->b, release_as(l->b, holder->opts.owner));
	return true;
}

long long rows_where(const char *where)
{
	return db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", where);
}
