/* The size of the reaper's next batch, so that nobody waits long for a batch. */
#ifndef BL_CORE_PACE_H
#define BL_CORE_PACE_H

#include <stdint.h>

#define BL_PACE_FIRST 100u /* rows of the first batch: the server's speed is not known yet */

/* Fewer rows make a batch no shorter: the rest of its time is the server's COMMIT. */
#define BL_PACE_LEAST 20u

/* A batch that took longer was too large; a batch that took less than half of this, too small. */
#define BL_PACE_SLOW_US 20000

/* A batch that took longer than this shows that the server is overloaded. */
#define BL_PACE_TROUBLE_US 50000
#define BL_PACE_REST_MAX_US 1000000 /* a batch that seems longer: a clock may have stepped */

/* The last batch was allowed `rows` rows, purged `had` rows, and took took_us. */
uint32_t bl_pace_next(uint32_t rows, uint32_t had, int64_t took_us);

/* How long to pause after that batch. */
int64_t bl_pace_rest_us(int64_t took_us);

#endif
