/* The waiters of some keys, as the server shows them. */
#include <stdlib.h>

#include "client/admin/admin.h"
#include "client/conn/retry.h"
#include "store/watch/waiters.h"

struct looking {
	struct bl_waited_key *asked;
	size_t n;
	struct bl_waiters found;
};

static int read_waiters_on(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct looking *l = arg;

	return bl_waiters_read(s, l->asked, l->n, &l->found, err);
}

static struct bl_waited_key *name_bells(const struct bizlock *b, const struct bl_key *keys,
                                        size_t n)
{
	struct bl_waited_key *asked = calloc(n + 1, sizeof(*asked));

	for (size_t i = 0; asked && i < n; i++) {
		asked[i].key = &keys[i];
		bl_bell_name(asked[i].bell, b->bell_seed, &keys[i]);
	}
	return asked;
}

static int show_waiter(const struct bl_waiter *w, int (*fn)(void *arg, const bizlock_waiter *),
                       void *arg)
{
	bizlock_waiter shown = {
	        .size = sizeof(shown),
	        .biz_type = w->asked->key->type,
	        .biz_id = w->asked->key->id,
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
	struct looking l = {name_bells(b, keys, n), n, {NULL, 0, 0}};
	int rc, end = 0;

	if (!l.asked)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_run_twice(b, read_waiters_on, &l, err);
	for (size_t i = 0; end == 0 && i < l.found.count; i++)
		end = show_waiter(&l.found.all[i], fn, arg);
	free(l.found.all);
	free(l.asked);
	return rc;
}
