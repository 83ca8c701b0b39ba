/* How long to pause before polling again. The pause doubles from 2 ms to a cap, with
 * jitter, so that contenders that met once do not meet for ever. */
#ifndef BL_CORE_BACKOFF_H
#define BL_CORE_BACKOFF_H

#include <stdint.h>

#define BL_BACKOFF_FIRST_MS 2u
#define BL_BACKOFF_CAP_MS 128u

/* Nanoseconds for the attempt-th pause (0, 1, ...): between one half and the
 * whole of min(FIRST << attempt, CAP). `random`: any 64 bits. */
int64_t bl_backoff_ns(unsigned attempt, uint64_t random);

#endif
