/* Many locks held at a time, and rows of nobody here. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include "world.h"

/* Takes "held-0", "held-1" and so on, one by one, by several threads at a time, for the
 * owner MANY_OWNER; and gives them back. lease_ms 0: the default. */
#define MANY_OWNER "bench"

void many_acquire(bizlock *b, unsigned n, uint32_t lease_ms);
void many_release(bizlock *b, unsigned n);

/* Rows of holders elsewhere, whose leases end in so many seconds: all over the table. */
void many_rows(const struct world *w, unsigned n, int seconds);

/* Waits until the server has written its changed pages: what it writes later would
 * count against what is measured. */
void many_settle(const struct world *w);

#endif
