/* Time and processors. */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <stdint.h>

int64_t now_ns(void); /* monotonic, the same for all processes */
void sleep_until(int64_t ns);

/* CPU milliseconds so far: of this process; of the server whose number is in
 * BIZLOCK_BENCH_SERVER_PID, or -1. */
int64_t own_cpu_ms(void);
int64_t server_cpu_ms(void);

#endif
