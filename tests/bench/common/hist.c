#define _GNU_SOURCE 1
#include "hist.h"

/* The first HIST_SUB buckets are 1 ns wide, each HIST_SUB further ones twice as wide
 * as those before them. */
static unsigned bucket_of(uint64_t ns)
{
	unsigned octave = 0;

	for (; ns >> octave >= 2 * HIST_SUB; octave++)
		;
	if (octave >= HIST_OCTAVES - 1)
		return HIST_OCTAVES * HIST_SUB - 1;
	return octave * HIST_SUB + (unsigned)(ns >> octave);
}

/* The middle of a bucket. */
static double ns_of(unsigned bucket)
{
	unsigned octave = bucket < 2 * HIST_SUB ? 0 : bucket / HIST_SUB - 1;

	return ((double)(bucket - octave * HIST_SUB) + 0.5) * (double)(1ull << octave);
}

void hist_add(struct hist *h, int64_t ns)
{
	if (ns < 0)
		ns = 0;
	h->n++;
	h->counts[bucket_of((uint64_t)ns)]++;
	if (ns > h->max_ns)
		h->max_ns = ns;
}

void hist_merge(struct hist *into, const struct hist *h)
{
	into->n += h->n;
	if (h->max_ns > into->max_ns)
		into->max_ns = h->max_ns;
	for (unsigned i = 0; i < HIST_OCTAVES * HIST_SUB; i++)
		into->counts[i] += h->counts[i];
}

double hist_us(const struct hist *h, double q)
{
	uint64_t seen = 0, wanted = (uint64_t)(q * (double)h->n);

	for (unsigned i = 0; i < HIST_OCTAVES * HIST_SUB && h->n; i++) {
		seen += h->counts[i];
		if (seen > wanted || seen == h->n)
			return (ns_of(i) < (double)h->max_ns ? ns_of(i) : (double)h->max_ns) / 1000;
	}
	return 0;
}

void hist_print(FILE *out, const char *name, const struct hist *h)
{
	fprintf(out, "\"%s\":{\"n\":%llu,\"p50\":%.3f,\"p99\":%.3f,\"p999\":%.3f,\"max\":%.3f}",
	        name, (unsigned long long)h->n, hist_us(h, 0.5), hist_us(h, 0.99),
	        hist_us(h, 0.999), (double)h->max_ns / 1000);
}
