/* How many rows the next batch may have, so that nobody waits long for one. Pure. */
#ifndef BL_CORE_PACE_H
#define BL_CORE_PACE_H

#include <stdint.h>

#define BL_PACE_FIRST 100u /* nobody knows yet how fast the server is */

/* Fewer do not make it shorter: what is left is the server's own time for a COMMIT. */
#define BL_PACE_LEAST 20u

/* A batch that took longer was too large; one that took less than half, small. */
#define BL_PACE_SLOW_US 20000

/* One that took even longer was hardly too large: the server has too much to do. */
#define BL_PACE_TROUBLE_US 50000
#define BL_PACE_REST_MAX_US 1000000 /* but perhaps its clock was set */

/* The last one was allowed `rows` and had `had` of them; it took so long. */
uint32_t bl_pace_next(uint32_t rows, uint32_t had, int64_t took_us);

/* How long to leave the server alone after it. */
int64_t bl_pace_rest_us(int64_t took_us);

#endif
