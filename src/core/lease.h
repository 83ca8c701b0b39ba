/* The times of a lease on the local clock: when it ends, when to renew it, when to give up. */
#ifndef BL_CORE_LEASE_H
#define BL_CORE_LEASE_H

#include "base/clock.h"

/* The end, on our clock, of a lease of `us` microseconds. The server counts it
 * from our statement's sending at `sent`, or from later on. The result is never
 * later than the end at the server: too early costs a renewal, too late breaks
 * exclusion. Two errors could make it late, and are subtracted:
 *  - The server may time statements by a clock that moves in ticks (MariaDB
 *    reads CLOCK_REALTIME_COARSE), so that a lease begins up to a tick before
 *    `sent`. A tick is 10 ms on the slowest kernels.
 *  - The two machines' clocks may run at different speeds: 1 ms in a second is
 *    twice the largest difference between two clocks that NTP controls. */
bl_time bl_lease_end(bl_time sent, int64_t us);

/* The lease, in milliseconds, that a holder must ask for to rely on it for `ns`. */
uint32_t bl_lease_for(bl_time ns);

/* When to renew the lease: after a third, so that two attempts may fail before it ends. */
bl_time bl_lease_due(bl_time sent, uint32_t lease_ms);

/* How much earlier than due a lease may be renewed, so that one statement renews
 * many leases. At worst a lease is renewed twice as often. */
bl_time bl_lease_early(uint32_t lease_ms);

/* When to give up a renewal that gets no answer, and to try again on a new connection: with a
 * third of the lease left, or half way from now to the lease's end, whichever is later. */
bl_time bl_lease_give_up(bl_time now, bl_time expires, uint32_t lease_ms);

#endif
