/* Who waits for some keys. */
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
struct door {
	char bell[BL_BELL_MAX + 1];
	const struct bl_key *key;
};

static int by_bell(const void *a, const void *b)
{
	return strcmp(((const struct door *)a)->bell, ((const struct door *)b)->bell);
}

static struct door *make_doors(const struct bizlock *b, const struct bl_key *keys, size_t n)
{
	struct door *doors = calloc(n, sizeof(*doors));

	for (size_t i = 0; doors && i < n; i++) {
		bl_bell_name(doors[i].bell, b->bell_seed, &keys[i]);
		doors[i].key = &keys[i];
	}
	if (doors)
		qsort(doors, n, sizeof(*doors), by_bell);
	return doors;
}

static const struct bl_key *key_of(const struct door *doors, size_t n, const struct bl_waiter *w)
{
	struct door wanted = {.key = NULL};
	const struct door *found;

	memcpy(wanted.bell, w->bell, sizeof(wanted.bell));
	found = bsearch(&wanted, doors, n, sizeof(*doors), by_bell);
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
	struct door *doors = make_doors(b, keys, n);
	struct bl_waiters waiters = {NULL, 0};
	int rc, end = 0;

	if (!doors)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_read_twice(b, read_waiters_on, &waiters, err);
	for (size_t i = 0; end == 0 && i < waiters.count; i++) {
		const struct bl_key *key = key_of(doors, n, &waiters.all[i]);

		if (key)
			end = show_waiter(key, &waiters.all[i], fn, arg);
	}
	free(waiters.all);
	free(doors);
	return rc;
}
