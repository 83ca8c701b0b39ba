#include "core/held.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/thread.h"

#define FIRST_BUCKETS 16

static uint64_t hash_of_thread(uint64_t key_hash, uint64_t serial)
{
	return bl_hash64_mix(key_hash) ^ serial;
}

static uint64_t hash_of_name(uint64_t key_hash, const char *name)
{
	uint64_t hash = BL_HASH64_START;

	for (size_t i = 0; i < BIZLOCK_OWNER_NAME_MAX && name[i]; i++)
		hash = bl_hash64_add(hash, (unsigned char)name[i]);
	return bl_hash64_mix(key_hash) ^ hash;
}

static uint64_t hash_of(const struct bl_key *key, const struct bl_owner *owner)
{
	return owner->thread ? hash_of_thread(key->hash, owner->thread)
	                     : hash_of_name(key->hash, owner->name);
}

static struct bl_hold **bucket_of(const struct bl_held *t, uint64_t hash)
{
	return &t->buckets[hash & t->mask];
}

static struct bl_hold **bucket_of_key(const struct bl_held *t, const struct bl_key *key)
{
	return &t->of_keys[key->hash & t->mask];
}

static bool make_buckets(struct bl_held *ret, size_t n)
{
	ret->buckets = calloc(n, sizeof(*ret->buckets));
	ret->of_keys = calloc(n, sizeof(*ret->of_keys));
	ret->mask = n - 1;
	if (ret->buckets && ret->of_keys)
		return true;
	free(ret->buckets);
	free(ret->of_keys);
	return false;
}

bool bl_held_init(struct bl_held *t)
{
	struct bl_held made = {.buckets = NULL};
	bool good = make_buckets(&made, FIRST_BUCKETS);

	*t = good ? made : (struct bl_held){.buckets = NULL};
	return good;
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
	free(t->of_keys);
	*t = (struct bl_held){.buckets = NULL};
}

struct bl_hold *bl_held_find(const struct bl_held *t, const struct bl_key *key,
                             const struct bl_owner *owner)
{
	struct bl_hold *h = *bucket_of(t, hash_of(key, owner));

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
	uint64_t hash;

	if (!key.biz_type || !key.biz_id)
		return NULL;
	if (h && is_named(h, key, owner))
		return h;
	hash = bl_key_hash(key);
	hash = owner ? hash_of_name(hash, owner) : hash_of_thread(hash, bl_thread_self()->serial);
	h = *bucket_of(t, hash);
	while (h && !is_named(h, key, owner))
		h = h->next;
	if (h)
		t->latest = h;
	return h;
}

static void add_to_key(struct bl_held *t, struct bl_hold *h)
{
	struct bl_hold **bucket = bucket_of_key(t, &h->key);

	h->next_of_key = *bucket;
	*bucket = h;
}

static void add_to(struct bl_held *t, struct bl_hold *h)
{
	struct bl_hold **bucket = bucket_of(t, h->hash);

	h->next = *bucket;
	*bucket = h;
	if (h->contends)
		add_to_key(t, h);
}

void bl_held_contends(struct bl_held *t, struct bl_hold *h)
{
	if (!h->contends)
		add_to_key(t, h);
	h->contends = true;
}

/* Without memory the table stays as it is: longer chains, nothing worse. */
static void grow(struct bl_held *t)
{
	struct bl_held wide = {.count = t->count, .latest = t->latest};

	if (!make_buckets(&wide, 2 * (t->mask + 1)))
		return;
	for (size_t i = 0; i <= t->mask; i++) {
		struct bl_hold *h = t->buckets[i];

		while (h) {
			struct bl_hold *next = h->next;

			add_to(&wide, h);
			h = next;
		}
	}
	free(t->buckets);
	free(t->of_keys);
	*t = wide;
}

struct bl_hold *bl_held_add(struct bl_held *t, const struct bl_key *key,
                            const struct bl_owner *owner)
{
	struct bl_hold *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	if (t->count > t->mask)
		grow(t);
	h->key = *key;
	h->owner = *owner;
	h->hash = hash_of(key, owner);
	h->state = BL_HOLD_ACQUIRING;
	add_to(t, h);
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
	struct bl_hold **link = bucket_of(t, h->hash), **of_key = bucket_of_key(t, &h->key);

	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	while (h->contends && *of_key != h)
		of_key = &(*of_key)->next_of_key;
	if (h->contends)
		*of_key = h->next_of_key;
	t->count--;
	if (t->latest == h)
		t->latest = NULL;
}

/* The first hold of the key in this chain, from h on. */
static struct bl_hold *skip_to_key(struct bl_hold *h, const struct bl_key *key)
{
	while (h && !bl_key_equal(&h->key, key))
		h = h->next_of_key;
	return h;
}

struct bl_hold *bl_held_of_key(const struct bl_held *t, const struct bl_key *key)
{
	return skip_to_key(*bucket_of_key(t, key), key);
}

struct bl_hold *bl_held_next_of_key(const struct bl_hold *h)
{
	return skip_to_key(h->next_of_key, &h->key);
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
		i = (prev->hash & t->mask) + 1;
	while (i <= t->mask && !t->buckets[i])
		i++;
	return i <= t->mask ? t->buckets[i] : NULL;
}
