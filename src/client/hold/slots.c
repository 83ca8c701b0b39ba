#include "client/hold/slots.h"

#include <stdlib.h>

#include "client/state.h"
#include "core/key.h"

#define FIRST (BIZLOCK_LIMIT_MAX + 1)
#define COUNT (UINT32_C(1) << 31)

uint32_t bl_slots_take(struct bizlock *b)
{
	struct bl_slots *s = &b->slots;

	if (s->count > 0)
		return s->back[--s->count];
	if (s->next < FIRST || s->next >= FIRST + COUNT)
		s->next = FIRST + (uint32_t)(bl_random(b) % COUNT);
	return s->next++;
}

/* How many are kept: a client that imports holds of others gives back more slots than it takes. */
#define MOST 4096

/* There are enough slots, so some may be forgotten. */
void bl_slots_give_back(struct bizlock *b, uint32_t slot)
{
	struct bl_slots *s = &b->slots;

	if (slot < FIRST || slot >= FIRST + COUNT || s->count >= MOST)
		return;
	if (s->count == s->room) {
		uint32_t room = s->room ? 2 * s->room : 16;
		uint32_t *back = realloc(s->back, room * sizeof(*back));

		if (!back)
			return;
		s->back = back;
		s->room = room;
	}
	s->back[s->count++] = slot;
}

void bl_slots_avoid(struct bizlock *b)
{
	b->slots.next = 0;
}

void bl_slots_free(struct bl_slots *slots)
{
	free(slots->back);
}
