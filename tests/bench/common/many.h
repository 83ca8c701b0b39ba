/* Many locks held at a time, rows of holders elsewhere, and one lock after the other. */
#ifndef BENCH_MANY_H
#define BENCH_MANY_H

#include <stdatomic.h>

#include "hist.h"
#include "world.h"

/* Takes "held-0", "held-1" and so on, one by one, by several threads at a time, for the
 * owner MANY_OWNER; and gives them back. lease_ms 0: the default. */
#define MANY_OWNER "bench"

void many_acquire(bizlock *b, unsigned n, uint32_t lease_ms);
void many_release(bizlock *b, unsigned n);

/* Rows of holders elsewhere, all over the table. Their leases end in this number of seconds. */
void many_rows(const struct world *w, unsigned n, int seconds);

/* Acquires and releases random keys until this time (of now_ms()), or until `over` is true. */
void many_pairs(bizlock *b, int64_t end, const atomic_bool *over, struct hist *acquire,
                struct hist *pair);

/* Waits until the server has written its changed pages. Later writes would slow down what is
 * measured. */
void many_settle(const struct world *w);

#endif
