/* The health of one of several hosts: whether it failed lately, so that others are tried first. */
#ifndef BL_CORE_STANDING_H
#define BL_CORE_STANDING_H

#include "base/clock.h"

/* A host that failed is tried last for this time; for twice the time if it fails again, and so on,
 * up to 320 s. */
#define BL_LATELY_NS (10000 * BL_NS_PER_MS)

/* All zero: nothing is known. */
struct bl_standing {
	bl_time failed_at; /* when it could not be reached, or not in time; 0: it could */
	unsigned failures; /* in a row */
	bl_time noted_at;  /* when a connection to it was useless the last time; 0: never */
};

void bl_standing_failed(struct bl_standing *s, bl_time now);
void bl_standing_reached(struct bl_standing *s);

bool bl_standing_is_last(const struct bl_standing *s, bl_time now);

#endif
