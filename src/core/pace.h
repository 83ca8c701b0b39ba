/* How many rows the reaper's next batch may have, so that nobody waits long for one. */
#ifndef BL_CORE_PACE_H
#define BL_CORE_PACE_H

#include <stdint.h>

#define BL_PACE_FIRST 100u /* nobody knows yet how fast the server is */

/* Fewer rows make no shorter batch: the rest is the server's own time for a COMMIT. */
#define BL_PACE_LEAST 20u

/* A batch that took longer was too large; one that took less than half of this, small. */
#define BL_PACE_SLOW_US 20000

/* A batch that took even longer was hardly too large: the server has too much to do. */
#define BL_PACE_TROUBLE_US 50000
#define BL_PACE_REST_MAX_US 1000000 /* a longer time may be a clock that was set */

/* The last batch was allowed `rows`, had `had` of them, and took took_us. */
uint32_t bl_pace_next(uint32_t rows, uint32_t had, int64_t took_us);

/* How long to leave the server alone after that batch. */
int64_t bl_pace_rest_us(int64_t took_us);

#endif
