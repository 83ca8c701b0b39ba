/* How long a holder may believe in its lease: its local end, and when to renew it. */
#ifndef BL_CORE_LEASE_H
#define BL_CORE_LEASE_H

#include "base/clock.h"

/* The end, on our clock, of a lease of `us` microseconds that the server began
 * to count when, or after, we sent the statement at `sent`. Never later than
 * the server's: too early costs a renewal, too late breaks exclusion. Two things
 * could make it late, and are taken off:
 *  - The server may time statements by a clock that moves in ticks (MariaDB
 *    reads CLOCK_REALTIME_COARSE), so that a lease begins up to a tick before
 *    it was asked for. A tick is 10 ms on the slowest kernels.
 *  - The two machines' clocks may run at different speeds: 1 ms in a second is
 *    twice what two clocks under NTP's care can differ by. */
bl_time bl_lease_end(bl_time sent, int64_t us);

/* The lease, in milliseconds, that lets a holder believe in its hold for that long. */
uint32_t bl_lease_for(bl_time ns);

/* When to renew it: at a third, so that two attempts may fail before it ends. */
bl_time bl_lease_due(bl_time sent, uint32_t lease_ms);

/* How much earlier than due a lease may be renewed along with others. One statement
 * then does for many; at worst a lease is renewed twice as often. */
bl_time bl_lease_early(uint32_t lease_ms);

/* When to give up a renewal that gets no answer, and to try on a fresh connection: with a
 * third of the lease left, or half way from now to its end, whichever is later. */
bl_time bl_lease_give_up(bl_time now, bl_time expires, uint32_t lease_ms);

#endif
