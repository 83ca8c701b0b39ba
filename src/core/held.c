#include "core/held.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"

#define FIRST_BUCKETS 16

/* By key alone, so that all owners of a key share a chain. */
static struct bl_hold **bucket_of(const struct bl_held *t, const struct bl_key *key)
{
	return &t->buckets[key->hash & t->mask];
}

bool bl_held_init(struct bl_held *t)
{
	t->buckets = calloc(FIRST_BUCKETS, sizeof(*t->buckets));
	t->mask = FIRST_BUCKETS - 1;
	t->count = 0;
	t->latest = NULL;
	return t->buckets != NULL;
}

void bl_held_free(struct bl_held *t)
{
	for (size_t i = 0; t->buckets && i <= t->mask; i++) {
		struct bl_hold *h = t->buckets[i];

		while (h) {
			struct bl_hold *next = h->next;

			bl_hold_free(h);
			h = next;
		}
	}
	free(t->buckets);
	*t = (struct bl_held){NULL, 0, 0, NULL};
}

struct bl_hold *bl_held_find(const struct bl_held *t, const struct bl_key *key,
                             const struct bl_owner *owner)
{
	struct bl_hold *h = *bucket_of(t, key);

	while (h && (h->state == BL_HOLD_ORPHAN || !bl_key_equal(&h->key, key) ||
	             !bl_owner_equal(&h->owner, owner)))
		h = h->next;
	return h;
}

static bool is_owned_by(const struct bl_hold *h, const char *owner)
{
	if (owner)
		return h->owner.thread == 0 && strcmp(h->owner.name, owner) == 0;
	return h->owner.thread == bl_thread_self()->serial;
}

static bool is_named(const struct bl_hold *h, bizlock_key key, const char *owner)
{
	return h->state != BL_HOLD_ORPHAN && strcmp(h->key.id, key.biz_id) == 0 &&
	       strcmp(h->key.type, key.biz_type) == 0 && is_owned_by(h, owner);
}

struct bl_hold *bl_held_named(struct bl_held *t, bizlock_key key, const char *owner)
{
	struct bl_hold *h = t->latest;

	if (!key.biz_type || !key.biz_id)
		return NULL;
	if (h && is_named(h, key, owner))
		return h;
	h = t->buckets[bl_key_hash(key) & t->mask];
	while (h && !is_named(h, key, owner))
		h = h->next;
	if (h)
		t->latest = h;
	return h;
}

/* Without memory the table stays as it is: longer chains, nothing worse. */
static void grow(struct bl_held *t)
{
	struct bl_held wide = {NULL, 2 * t->mask + 1, t->count, t->latest};

	wide.buckets = calloc(wide.mask + 1, sizeof(*wide.buckets));
	if (!wide.buckets)
		return;
	for (size_t i = 0; i <= t->mask; i++) {
		struct bl_hold *h = t->buckets[i];

		while (h) {
			struct bl_hold *next = h->next, **bucket = bucket_of(&wide, &h->key);

			h->next = *bucket;
			*bucket = h;
			h = next;
		}
	}
	free(t->buckets);
	*t = wide;
}

struct bl_hold *bl_held_add(struct bl_held *t, const struct bl_key *key,
                            const struct bl_owner *owner)
{
	struct bl_hold *h = calloc(1, sizeof(*h)), **bucket;

	if (!h)
		return NULL;
	if (t->count > t->mask)
		grow(t);
	h->key = *key;
	h->owner = *owner;
	h->state = BL_HOLD_ACQUIRING;
	bucket = bucket_of(t, key);
	h->next = *bucket;
	*bucket = h;
	t->count++;
	return h;
}

void bl_hold_free(struct bl_hold *h)
{
	bl_token_drop(h->thread);
	free(h->words);
	free(h);
}

void bl_hold_move(struct bl_hold *h, enum bl_hold_state to)
{
	static const unsigned moves[] = {
	        [BL_HOLD_ACQUIRING] = 1u << BL_HOLD_HELD | 1u << BL_HOLD_ORPHAN,
	        [BL_HOLD_HELD] = 1u << BL_HOLD_LOST | 1u << BL_HOLD_ORPHAN,
	        [BL_HOLD_LOST] = 1u << BL_HOLD_ORPHAN,
	        [BL_HOLD_ORPHAN] = 0,
	};

	assert(moves[h->state] & 1u << to);
	(void)moves;
	h->state = to;
}

void bl_held_take_out(struct bl_held *t, struct bl_hold *h)
{
	struct bl_hold **link = bucket_of(t, &h->key);

	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	t->count--;
	if (t->latest == h)
		t->latest = NULL;
}

void bl_held_remove(struct bl_held *t, struct bl_hold *h)
{
	bl_held_take_out(t, h);
	bl_hold_free(h);
}

/* The first hold of the key in this chain, from h on. */
static struct bl_hold *skip_to_key(struct bl_hold *h, const struct bl_key *key)
{
	while (h && !bl_key_equal(&h->key, key))
		h = h->next;
	return h;
}

struct bl_hold *bl_held_of_key(const struct bl_held *t, const struct bl_key *key)
{
	return skip_to_key(*bucket_of(t, key), key);
}

struct bl_hold *bl_held_next_of_key(const struct bl_hold *h)
{
	return skip_to_key(h->next, &h->key);
}

bool bl_held_has_bell(const struct bl_held *t, const struct bl_key *key, uint64_t conn)
{
	const struct bl_hold *h = bl_held_of_key(t, key);

	while (h && h->bell != conn)
		h = bl_held_next_of_key(h);
	return h != NULL;
}

struct bl_hold *bl_held_with_fence(const struct bl_held *t, const struct bl_key *key,
                                   uint64_t fence)
{
	struct bl_hold *h = bl_held_of_key(t, key);

	while (h && h->fence != fence)
		h = bl_held_next_of_key(h);
	return h;
}

struct bl_hold *bl_held_walk(const struct bl_held *t, const struct bl_hold *prev)
{
	size_t i = 0;

	if (prev && prev->next)
		return prev->next;
	if (prev)
		i = (prev->key.hash & t->mask) + 1;
	while (i <= t->mask && !t->buckets[i])
		i++;
	return i <= t->mask ? t->buckets[i] : NULL;
}
