#include "report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "faults.h"
#include "patience.h"

static const char *const whats[] = {"acquire", "release", "close"};

static double seconds(int64_t us)
{
	return us == INT64_MAX ? INFINITY : (double)us / 1e6;
}

/* ---- faults ---------------------------------------------------------------------- */

/* From the fault until a grant that returned later; any: of any key, otherwise of the key that
 * waited longest. For ever: none came. */
static int64_t until_granted(const struct chaos_history *h, const struct chaos_fault *fault,
                             bool any)
{
	int64_t first[CHAOS_KEYS], best = -1;

	for (unsigned key = 0; key < CHAOS_KEYS; key++)
		first[key] = INT64_MAX;
	for (size_t i = 0; i < h->n_holds; i++) {
		const struct chaos_hold *hold = &h->holds[i];

		if (hold->from_us > fault->struck_us && hold->from_us < first[hold->key])
			first[hold->key] = hold->from_us;
	}
	for (unsigned key = 0; key < CHAOS_KEYS; key++) {
		int64_t us = first[key] == INT64_MAX ? INT64_MAX : first[key] - fault->struck_us;

		if (best < 0 || (any ? us < best : us > best))
			best = us;
	}
	return best;
}

void chaos_report_fault(const struct chaos_history *h, const struct chaos_fault *fault,
                        int64_t since_us)
{
	printf("  %6.1f s: node %u, %s; mended after %.1f s; next grant after %.2f s, of each "
	       "key %.2f s\n",
	       seconds(fault->begun_us - since_us), fault->node + 1u, chaos_fault_text(fault->kind),
	       seconds(fault->mended_us - fault->begun_us), seconds(until_granted(h, fault, true)),
	       seconds(until_granted(h, fault, false)));
	fflush(stdout);
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void report_kind(const struct chaos_history *h, unsigned kind)
{
	int64_t *times = calloc(2 * h->n_faults + 1, sizeof(*times)), *each = times + h->n_faults;
	size_t n = 0;

	if (!times)
		die("out of memory");
	for (size_t i = 0; i < h->n_faults; i++) {
		if (h->faults[i].kind != kind)
			continue;
		times[n] = until_granted(h, &h->faults[i], true);
		each[n++] = until_granted(h, &h->faults[i], false);
	}
	qsort(times, n, sizeof(*times), by_size);
	qsort(each, n, sizeof(*each), by_size);
	if (n > 0)
		printf("%-40s %5zu %9.2f %9.2f %9.2f %9.2f\n", chaos_fault_text(kind), n,
		       seconds(times[n / 2]), seconds(times[n - 1]), seconds(each[n / 2]),
		       seconds(each[n - 1]));
	free(times);
}

/* ---- outcomes -------------------------------------------------------------------- */

static void report_outcomes(const struct chaos_history *h)
{
	unsigned long n[3][16] = {{0}}, open = 0;
	int64_t longest[3][16] = {{0}};

	for (size_t i = 0; i < h->n_calls; i++) {
		const struct chaos_call *call = &h->calls[i];
		int64_t took = call->ended_us - call->begun_us;

		if (!call->ended_us) {
			open++;
			continue;
		}
		n[call->what][call->rc & 15]++;
		if (took > longest[call->what][call->rc & 15])
			longest[call->what][call->rc & 15] = took;
	}
	printf("%-40s %9s %9s\n", "outcome", "times", "longest");
	for (unsigned what = 0; what < 3; what++)
		for (int rc = 0; rc < 16; rc++)
			if (n[what][rc])
				printf("%s: %-*s %9lu %7.2f s\n", whats[what], what == 2 ? 33 : 31,
				       bizlock_err_name(rc), n[what][rc],
				       seconds(longest[what][rc]));
	printf("%-40s %9lu\n", "none", open);
}

void chaos_report(const struct chaos_history *h)
{
	unsigned long lost = 0, by_call = 0;

	for (size_t i = 0; i < h->n_holds; i++) {
		lost += h->holds[i].told_us != 0;
		by_call += h->holds[i].by_call;
	}
	printf("%zu grants, %lu of them by CALL; %lu told lost\n", h->n_holds, by_call, lost);
	printf("%-40s %5s %19s %19s\n", "seconds from a fault to the next grant", "", "of any key",
	       "of each key");
	printf("%-40s %5s %9s %9s %9s %9s\n", "", "times", "median", "max", "median", "max");
	for (unsigned kind = 0; kind < CHAOS_FAULT_KINDS; kind++)
		report_kind(h, kind);
	report_outcomes(h);
}

/* ---- the verdict ------------------------------------------------------------------ */

static const char *const rules[] = {
#define TEXT(name, text) text,
        CHAOS_RULES(TEXT)
#undef TEXT
};

static void report_violation(const struct chaos_violation *x, int64_t since_us)
{
	printf("  %6.1f s: %s: key %u", seconds(x->at_us - since_us), rules[x->rule], x->key);
	if (x->rule != CHAOS_STUCK)
		printf(", process %u", x->process);
	if (x->fence)
		printf(", fence %" PRIu64, x->fence);
	if (x->other)
		printf(", and fence %" PRIu64, x->other);
	putchar('\n');
}

#define AROUND_US 15000000 /* longer than a lease and a failover */

static double since(int64_t us, int64_t since_us)
{
	return us ? seconds(us - since_us) : 0;
}

/* A violation seldom comes twice: what its key saw around that time is printed at once. */
static void report_around(const struct chaos_history *h, const struct chaos_violation *x,
                          int64_t since_us)
{
	printf("  key %u: process, fence, limit: asked, granted, believed until, lease; told, "
	       "given back, answer\n",
	       x->key);
	for (size_t i = 0; i < h->n_holds; i++) {
		const struct chaos_hold *hold = &h->holds[i];

		if (hold->key == x->key && hold->from_us > x->at_us - AROUND_US &&
		    hold->asked_us < x->at_us + AROUND_US / 5)
			printf("    %2u %6" PRIu64 " %2" PRId32
			       ": %8.4f %8.4f %8.4f %8.4f; %8.4f %8.4f %8.4f %s\n",
			       hold->process, hold->fence, (int32_t)hold->limit,
			       since(hold->asked_us, since_us), since(hold->from_us, since_us),
			       since(hold->until_us, since_us), since(hold->ends_us, since_us),
			       since(hold->told_us, since_us), since(hold->given_us, since_us),
			       since(hold->answered_us, since_us), bizlock_err_name(hold->rc));
	}
}

static void report_errors(const struct chaos_clients *c, int64_t since_us)
{
	const struct chaos_error *e;

	for (unsigned i = 0; (e = chaos_clients_error(c, i)) != NULL && i < 20; i++)
		printf("  %6.1f s: process %u: %s: %s: %s\n", seconds(e->at_us - since_us),
		       e->process, whats[e->what], bizlock_err_name(e->rc), e->text);
}

bool chaos_report_verdict(const struct chaos_verdict *v, const struct chaos_history *h,
                          const struct chaos_clients *c, int64_t since_us)
{
	unsigned long all = 0;

	for (unsigned rule = 0; rule < CHAOS_RULE_COUNT; rule++) {
		all += v->counts[rule];
		printf("%-60s %6lu\n", rules[rule], v->counts[rule]);
	}
	for (unsigned i = 0; i < v->shown; i++)
		report_violation(&v->violations[i], since_us);
	if (v->shown)
		report_around(h, &v->violations[0], since_us);
	report_errors(c, since_us);
	return all == 0;
}
