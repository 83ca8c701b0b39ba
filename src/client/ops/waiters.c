/* The waiters of some keys, as the server's process list shows them. */
#include <stdlib.h>
#include <string.h>

#include "client/conn/retry.h"
#include "client/ops/ops.h"
#include "store/waiters.h"

static int read_waiters_on(struct bl_session *s, void *arg, struct bl_err *err)
{
	return bl_waiters_read(s, arg, err);
}

/* The process list knows bells, not keys. */
struct named_bell {
	char bell[BL_BELL_MAX + 1];
	const struct bl_key *key;
};

static int by_bell(const void *a, const void *b)
{
	return strcmp(((const struct named_bell *)a)->bell, ((const struct named_bell *)b)->bell);
}

static struct named_bell *name_bells(const struct bizlock *b, const struct bl_key *keys, size_t n)
{
	struct named_bell *bells = calloc(n, sizeof(*bells));

	for (size_t i = 0; bells && i < n; i++) {
		bl_bell_name(bells[i].bell, b->bell_seed, &keys[i]);
		bells[i].key = &keys[i];
	}
	if (bells)
		qsort(bells, n, sizeof(*bells), by_bell);
	return bells;
}

static const struct bl_key *key_of(const struct named_bell *bells, size_t n,
                                   const struct bl_waiter *w)
{
	struct named_bell wanted = {.key = NULL};
	const struct named_bell *found;

	memcpy(wanted.bell, w->bell, sizeof(wanted.bell));
	found = bsearch(&wanted, bells, n, sizeof(*bells), by_bell);
	return found ? found->key : NULL;
}

static int show_waiter(const struct bl_key *key, const struct bl_waiter *w,
                       int (*fn)(void *arg, const bizlock_waiter *), void *arg)
{
	bizlock_waiter shown = {
	        .size = sizeof(shown),
	        .biz_type = key->type,
	        .biz_id = key->id,
	        .user = w->user,
	        .host = w->host,
	        .connection = w->connection,
	        .waited_ms = w->waited_ms,
	};

	return fn(arg, &shown);
}

int bl_client_waiters(struct bizlock *b, const struct bl_key *keys, size_t n,
                      int (*fn)(void *arg, const bizlock_waiter *), void *arg, struct bl_err *err)
{
	struct named_bell *bells = name_bells(b, keys, n);
	struct bl_waiters waiters = {NULL, 0};
	int rc, end = 0;

	if (!bells)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_read_twice(b, read_waiters_on, &waiters, err);
	for (size_t i = 0; end == 0 && i < waiters.count; i++) {
		const struct bl_key *key = key_of(bells, n, &waiters.all[i]);

		if (key)
			end = show_waiter(key, &waiters.all[i], fn, arg);
	}
	free(waiters.all);
	free(bells);
	return rc;
}
