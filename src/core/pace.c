#include "core/pace.h"

uint32_t bl_pace_next(uint32_t rows, uint32_t had, int64_t took_us)
{
	uint32_t half = rows / 2;

	if (took_us > BL_PACE_SLOW_US)
		return half > BL_PACE_LEAST ? half : BL_PACE_LEAST;
	/* A batch that was not full tells nothing about a larger one. */
	if (took_us < BL_PACE_SLOW_US / 2 && had >= rows)
		return rows + half + 1;
	return rows;
}

int64_t bl_pace_rest_us(int64_t took_us)
{
	if (took_us <= BL_PACE_TROUBLE_US)
		return 0;
	return took_us < BL_PACE_REST_MAX_US ? took_us : BL_PACE_REST_MAX_US;
}
