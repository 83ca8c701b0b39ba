#include "client/conn/yields.h"

/* Enough for a watcher on a machine that is not overloaded, and the longest time that a key stays
 * free in vain. */
#define YIELD_NS (10 * BL_NS_PER_MS)

/* How long a key stays hot. While its waits sleep at the doorbell, which serves in order, nothing
 * tells whether the key is still hot. */
#define HOT_NS (10000 * BL_NS_PER_MS)

static struct bl_yield from_now(const struct bl_key *key, bl_time ns)
{
	return (struct bl_yield){key->hash, bl_now() + ns};
}

/* 0: the note is over, or another key's. */
static bl_time until_when(const struct bl_yield *y, const struct bl_key *key)
{
	return y->hash == key->hash && !bl_passed(y->until) ? y->until : 0;
}

void bl_yields_note(struct bl_yields *y, const struct bl_key *key)
{
	y->all[key->hash % BL_YIELDS] = from_now(key, YIELD_NS);
}

bl_time bl_yields_until(const struct bl_yields *y, const struct bl_key *key)
{
	return until_when(&y->all[key->hash % BL_YIELDS], key);
}

void bl_yields_note_hot(struct bl_yields *y, const struct bl_key *key)
{
	y->hot[key->hash % BL_YIELDS] = from_now(key, HOT_NS);
}

bool bl_yields_is_hot(const struct bl_yields *y, const struct bl_key *key)
{
	return until_when(&y->hot[key->hash % BL_YIELDS], key) != 0;
}
