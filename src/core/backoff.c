#include "core/backoff.h"

#include "base/clock.h"

int64_t bl_backoff_ns(unsigned attempt, uint64_t random)
{
	uint64_t whole = BL_BACKOFF_CAP_MS, half;

	if (attempt < 16 && (uint64_t)BL_BACKOFF_FIRST_MS << attempt < whole)
		whole = (uint64_t)BL_BACKOFF_FIRST_MS << attempt;
	whole *= BL_NS_PER_MS;
	half = whole / 2;
	return (int64_t)(half + random % (half + 1));
}
