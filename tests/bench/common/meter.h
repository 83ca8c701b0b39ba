/* Time, processes and processors. */
#ifndef BENCH_METER_H
#define BENCH_METER_H

#include <stdint.h>
#include <sys/types.h>

int64_t now_ns(void); /* monotonic, the same for all processes */
void sleep_until(int64_t ns);

/* CPU milliseconds so far: of this process; of the server whose number is in
 * BIZLOCK_BENCH_SERVER_PID, or -1. */
int64_t own_cpu_ms(void);
int64_t server_cpu_ms(void);

/* A child that ends with the thread that called this. 0: in the child. */
pid_t meter_fork(void);

/* Of a child that has not been waited for. */
int64_t child_cpu_ms(pid_t pid);

/* Its TCP connections to a port of this machine, 512 at most, but those that this process has,
 * too, and has left to its child. */
unsigned connections_of(pid_t pid, unsigned port);

#endif
