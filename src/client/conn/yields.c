#include "client/conn/yields.h"

/* What a watcher needs on a machine that is not overloaded, and what its key may be free for
 * nothing at most. */
#define YIELD_NS (10 * BL_NS_PER_MS)

void bl_yields_note(struct bl_yields *y, const struct bl_key *key)
{
	y->all[key->hash % BL_YIELDS] = (struct bl_yield){key->hash, bl_now() + YIELD_NS};
}

bl_time bl_yields_until(const struct bl_yields *y, const struct bl_key *key)
{
	const struct bl_yield *yield = &y->all[key->hash % BL_YIELDS];

	return yield->hash == key->hash && !bl_passed(yield->until) ? yield->until : 0;
}
