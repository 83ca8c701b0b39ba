#include "core/lease.h"

#define TICK_US 10000
#define DRIFT_PARTS 1000

bl_time bl_lease_end(bl_time sent, int64_t us)
{
	return sent + (us - TICK_US - us / DRIFT_PARTS) * 1000;
}
