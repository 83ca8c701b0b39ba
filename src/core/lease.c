#include "core/lease.h"

#define TICK_US 10000
#define DRIFT_PARTS 1000

bl_time bl_lease_end(bl_time sent, int64_t us)
{
	return sent + (us - TICK_US - us / DRIFT_PARTS) * 1000;
}

bl_time bl_lease_due(bl_time sent, uint32_t lease_ms)
{
	return sent + lease_ms * BL_NS_PER_MS / 3;
}

bl_time bl_lease_early(uint32_t lease_ms)
{
	return bl_earlier(lease_ms * BL_NS_PER_MS / 6, 1000 * BL_NS_PER_MS);
}
