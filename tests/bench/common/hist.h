/* Durations, each kept with an error of less than 2 %. All zero is empty. Several may lie in memory
 * that processes share, if each process has one of its own. */
#ifndef BENCH_HIST_H
#define BENCH_HIST_H

#include <stdint.h>
#include <stdio.h>

#define HIST_SUB 64     /* parts of each doubling */
#define HIST_OCTAVES 40 /* up to nine hours, in ns */

struct hist {
	uint64_t n;
	int64_t max_ns;
	uint32_t counts[HIST_OCTAVES * HIST_SUB];
};

void hist_add(struct hist *h, int64_t ns);
void hist_merge(struct hist *into, const struct hist *h);

/* The duration that a share q (0 to 1) of all durations does not exceed; 0 if there are none. */
double hist_us(const struct hist *h, double q);

/* A JSON member: "name":{"n":..,"p50":..,"p99":..,"p999":..,"max":..}, in µs. */
void hist_print(FILE *out, const char *name, const struct hist *h);

#endif
