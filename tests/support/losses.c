#define _GNU_SOURCE 1
#include "losses.h"

#include <stdio.h>
#include <string.h>

#include "patience.h"

static void on_lost(void *arg, bizlock_key key, uint64_t fence)
{
	struct losses *l = arg;
	unsigned n = atomic_load(&l->count);

	if (atomic_fetch_add(&l->inside, 1) != 0)
		die("two calls at a time");
	if (n == LOSSES_MAX || strcmp(key.biz_type, "test") != 0)
		die("unexpected loss: %s/%s", key.biz_type, key.biz_id);
	snprintf(l->list[n].id, sizeof(l->list[n].id), "%s", key.biz_id);
	l->list[n].fence = fence;
	l->list[n].at = now_ms();
	pause_ms(2); /* gives another call the time to come, if the library were to allow that */
	atomic_fetch_sub(&l->inside, 1);
	atomic_store(&l->count, n + 1);
}

void losses_watch(struct losses *l, bizlock *b)
{
	if (bizlock_on_lost(b, on_lost, l) != BIZLOCK_OK)
		die("on_lost: %s", bizlock_errmsg(b));
}
