#include "core/standing.h"

#define DOUBLINGS_MAX 5

static bool within(bl_time since, bl_time length, bl_time now)
{
	return since && now < since + length;
}

/* How long a failure counts. */
static bl_time length_of(const struct bl_standing *s)
{
	unsigned doublings = s->failures > 1 ? s->failures - 1 : 0;

	return BL_LATELY_NS << (doublings < DOUBLINGS_MAX ? doublings : DOUBLINGS_MAX);
}

void bl_standing_failed(struct bl_standing *s, bl_time now)
{
	if (!within(s->failed_at, length_of(s), now)) /* many threads may meet one failure */
		s->failures++;
	s->failed_at = now;
}

void bl_standing_reached(struct bl_standing *s)
{
	s->failed_at = 0;
	s->failures = 0;
}

bool bl_standing_is_last(const struct bl_standing *s, bl_time now)
{
	return within(s->failed_at, length_of(s), now) || within(s->noted_at, BL_LATELY_NS, now);
}
