/* The counters of a client. They are relaxed atomics, so that counting costs neither a mutex nor a
 * system call, and any thread may count at any place. */
#ifndef BL_CORE_NUMBERS_H
#define BL_CORE_NUMBERS_H

#include <stdatomic.h>
#include <stdint.h>

#include "bizlock.h"

/* Every counter, in the order in which they are shown:
 *   X(NAME, field of bizlock_numbers, kind, metric, label, help)
 * kind: how it is shown, see core/prometheus.c. help NULL: one more sample, with
 * another label, of the metric above. */
#define BL_COUNTERS(X)                                                                             \
	X(ACQUIRED, acquired, COUNT, "acquired_total", "",                                         \
	  "Locks acquired, re-entries not among them.")                                            \
	X(TAKEN_OVER, taken_over, COUNT, "taken_over_total", "",                                   \
	  "Locks acquired from an owner that never released.")                                     \
	X(REENTERED, reentered, COUNT, "reentered_total", "", "Re-entries.")                       \
	X(BUSY, busy, COUNT, "not_acquired_total", "reason=\"busy\"",                              \
	  "Acquisitions that failed, by reason.")                                                  \
	X(TIMED_OUT, timed_out, COUNT, "not_acquired_total", "reason=\"timeout\"", NULL)           \
	X(CANCELLED, cancelled, COUNT, "not_acquired_total", "reason=\"cancelled\"", NULL)         \
	X(UNKNOWN, unknown, COUNT, "not_acquired_total", "reason=\"unknown\"", NULL)               \
	X(RELEASED, released, COUNT, "released_total", "", "Locks released, the last level.")      \
	X(LOST, lost, COUNT, "lost_total", "", "Locks lost while held.")                           \
	X(RENEWALS, renewals, COUNT, "renewals_total", "", "Leases renewed by the client itself.") \
	X(RENEW_LAG_US, renew_lag_us, SECONDS, "renew_lag_seconds_total", "",                      \
	  "How much later than due leases were renewed, in all.")                                  \
	X(RENEW_LAG_MAX_US, renew_lag_max_us, SECONDS_NOW, "renew_lag_max_seconds", "",            \
	  "How much later than due a lease was renewed, at worst.")                                \
	X(RETRIED_CONFLICT, retried_conflict, COUNT, "retried_total", "class=\"conflict\"",        \
	  "Statements repeated, by class of error.")                                               \
	X(RETRIED_STOPPED, retried_stopped, COUNT, "retried_total", "class=\"stopped\"", NULL)     \
	X(RETRIED_LOST, retried_lost, COUNT, "retried_total", "class=\"lost\"", NULL)              \
	X(RECONNECTS, reconnects, COUNT, "reconnects_total", "",                                   \
	  "Connections opened in place of lost ones.")                                             \
	X(CLOCK_STEPS, clock_steps, COUNT, "clock_steps_total", "",                                \
	  "Steps of the server's clock, noticed when renewing.")                                   \
	X(WAIT_US, wait_us, WAITS, "wait_seconds", "", "How long acquisitions waited.")            \
	X(RENEW_UNREACHED, renew_unreached, COUNT, "renew_failed_total", "reason=\"unreached\"",   \
	  "Tries to renew that failed, by reason.")                                                \
	X(RENEW_REFUSED, renew_refused, COUNT, "renew_failed_total", "reason=\"refused\"", NULL)   \
	X(RENEW_FENCED, renew_fenced, COUNT, "renew_failed_total", "reason=\"fenced\"", NULL)

enum bl_counter {
#define BL_ENUM_(name, field, kind, metric, label, help) BL_COUNT_##name,
	BL_COUNTERS(BL_ENUM_) BL_COUNTER_COUNT
#undef BL_ENUM_
};

/* All zero to begin with. */
struct bl_numbers {
	atomic_uint_least64_t counts[BL_COUNTER_COUNT];
	atomic_uint_least64_t waits[BIZLOCK_WAIT_BUCKETS];
};

void bl_count(struct bl_numbers *n, enum bl_counter which);
void bl_count_add(struct bl_numbers *n, enum bl_counter which, uint64_t more);

/* For a counter that keeps the largest value it was given. */
void bl_count_max(struct bl_numbers *n, enum bl_counter which, uint64_t value);

/* Counts an acquisition that waited for `us` microseconds: in its bucket, and in the sum. */
void bl_count_wait(struct bl_numbers *n, uint64_t us);

/* Each number is right, but not all numbers are of the same moment. */
void bl_numbers_read(struct bl_numbers *n, uint64_t held, bizlock_numbers *ret);

/* Upper bounds of the buckets, inclusive, in milliseconds. The last bucket has none. */
extern const uint32_t bl_wait_bounds_ms[BIZLOCK_WAIT_BUCKETS - 1];

#endif
