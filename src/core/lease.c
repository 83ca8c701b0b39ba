#include "core/lease.h"

#define TICK_US 10000
#define DRIFT_PARTS 1000

bl_time bl_lease_end(bl_time sent, int64_t us)
{
	return sent + (us - TICK_US - us / DRIFT_PARTS) * 1000;
}

uint32_t bl_lease_for(bl_time ns)
{
	int64_t us = ns > 0 ? ns / 1000 : 0;
	int64_t ms = (us + us / (DRIFT_PARTS - 1) + TICK_US) / 1000 + 1;

	return ms < UINT32_MAX ? (uint32_t)ms : UINT32_MAX;
}

bl_time bl_lease_due(bl_time sent, uint32_t lease_ms)
{
	return sent + lease_ms * BL_NS_PER_MS / 3;
}

bl_time bl_lease_give_up(bl_time now, bl_time expires, uint32_t lease_ms)
{
	bl_time a_third_left = expires - lease_ms * BL_NS_PER_MS / 3;

	return bl_later(a_third_left, now + (expires - now) / 2);
}

bl_time bl_lease_early(uint32_t lease_ms)
{
	return bl_earlier(lease_ms * BL_NS_PER_MS / 6, 1000 * BL_NS_PER_MS);
}
