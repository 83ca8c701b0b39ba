/* Giving many back: what one statement can remove goes by one statement. */
#include "client/set.h"

#include <stdlib.h>

#include "client/hold.h"
#include "store/errclass.h"

/* In its last level, with no rest to keep, and no transaction in the way. */
static bool is_plain(struct bl_member *m)
{
	return bl_hold_held(&m->call, m->hold) && m->hold->depth == 1 &&
	       bl_hold_rest_us(m->hold) == 0 && !m->hold->fenced;
}

/* Of several errors that of the caller's first key is told. */
struct first {
	struct bl_err *err;
	size_t place;
};

static void keep(struct first *first, const struct bl_member *m)
{
	if (m->rc == BIZLOCK_OK || (first->err->code != BIZLOCK_OK && first->place < m->place))
		return;
	*first->err = *m->call.err;
	first->place = m->place;
	bl_err_wrap(first->err, "%s/%s", m->call.key.type, m->call.key.id);
}

static void ended(struct first *first, struct bl_member *m, bool last)
{
	struct bizlock *b = m->call.client;

	keep(first, m);
	if (m->rc == BIZLOCK_OK && last)
		bl_count(&b->numbers, BL_COUNT_RELEASED);
	pthread_mutex_lock(&b->mu);
	bl_release_end(b, m->hold, last, m->rc);
	pthread_mutex_unlock(&b->mu);
	m->hold = NULL;
}

static void begin_all(struct bl_member *members, size_t n, struct first *first)
{
	for (size_t i = 0; i < n; i++) {
		struct bl_member *m = &members[i];

		pthread_mutex_lock(&m->call.client->mu);
		m->hold = bl_hold_begin(&m->call, &m->rc);
		pthread_mutex_unlock(&m->call.client->mu);
		if (!m->hold && m->rc == BIZLOCK_OK)
			m->rc = bl_hold_none(&m->call);
		keep(first, m);
	}
}

/* Those that have their doorbells on the same connection: a set's, most often. */
static size_t gather(struct bl_member *members, size_t n, struct bl_item *items,
                     struct bl_member **plain)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		struct bl_member *m = &members[i];

		if (!m->hold || !is_plain(m) ||
		    (count > 0 && m->hold->bell != plain[0]->hold->bell))
			continue;
		items[count] = (struct bl_item){m->hold->key, m->hold->fence, m->call.bell};
		plain[count++] = m;
	}
	return count;
}

/* As for a single one: who finds its row gone within the lease was it itself, if a
 * reply of this was lost. */
static int answer(struct bl_member *m, const struct bl_change *change, bool seen)
{
	bool ours;

	if (seen)
		return BIZLOCK_OK;
	pthread_mutex_lock(&m->call.client->mu);
	ours = change->repeated && bl_hold_left_ms(m->hold) > 0;
	pthread_mutex_unlock(&m->call.client->mu);
	return ours ? BIZLOCK_OK : bl_hold_lost(&m->call, m->hold);
}

/* Somebody has locked one of them at least, and must not be in the way of the others: each goes
 * by itself, after a look. */
static void part(struct bl_member **plain, size_t n)
{
	for (size_t i = 0; i < n; i++)
		plain[i]->hold->fenced = true;
}

static void drop(struct bl_member **plain, struct bl_item *items, size_t n, struct bl_set_row *rows,
                 struct first *first)
{
	struct bl_change change = {
	        .what = BL_CHANGE_DROP_SET,
	        .items = items,
	        .count = n,
	        .rows = rows,
	        .bell = plain[0]->hold->bell,
	};
	struct bizlock *b = plain[0]->call.client;
	int rc = bl_retry_change(&plain[0]->call, &change);

	pthread_mutex_lock(&b->mu);
	for (size_t i = 0; i < n; i++)
		plain[i]->hold->bell = change.bell;
	pthread_mutex_unlock(&b->mu);
	if (rc == BIZLOCK_DB && bl_waited_in_vain(plain[0]->call.err)) {
		part(plain, n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		struct bl_member *m = plain[i];

		m->rc = rc == BIZLOCK_OK ? answer(m, &change, rows[i].seen) : rc;
		ended(first, m, true);
	}
}

static void one_by_one(struct bl_member *members, size_t n, struct first *first)
{
	for (size_t i = 0; i < n; i++) {
		struct bl_member *m = &members[i];
		bool last;

		if (!m->hold)
			continue;
		last = m->hold->depth == 1;
		m->rc = bl_release_level(&m->call, m->hold);
		ended(first, m, last);
	}
}

static void release_all(struct bl_member *members, size_t n, struct first *first)
{
	struct bl_item *items = calloc(n, sizeof(*items));
	struct bl_set_row *rows = calloc(n, sizeof(*rows));
	struct bl_member **plain = calloc(n, sizeof(*plain));
	size_t count;

	begin_all(members, n, first);
	/* Without memory each goes by itself. */
	while (items && rows && plain && (count = gather(members, n, items, plain)) > 0)
		drop(plain, items, count, rows, first);
	one_by_one(members, n, first);
	free(items);
	free(rows);
	free(plain);
}

void bl_client_release_all(struct bl_member *members, size_t n, struct bl_err *ret_first)
{
	struct first first = {ret_first, 0};

	bl_err_clear(ret_first);
	if (bl_members_sort(members, n) == BIZLOCK_OK)
		release_all(members, n, &first);
	else
		*ret_first = *members->call.err;
}
