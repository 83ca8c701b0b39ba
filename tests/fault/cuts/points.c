/* Where it can go wrong: found by running every scenario once without a fault. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuts.h"
#include "patience.h"

static const char *const side_names[] = {
        [FAULT_REQUESTS] = "requests", [FAULT_REPLIES] = "replies"};

/* How many points of each scenario are in a sample, which is drawn anew each time, for each server
 * and each sanitizer. All points would take many minutes, because each timeout is a second. */
static const unsigned sample[WHATS] = {
        [CUT] = 12,         [CUT_AGAIN] = 3, [CUT_EVER] = 1, [SWALLOW] = 1,
        [SWALLOW_EVER] = 1, [DELAY] = 2,     [LATE] = 1,
};

/* Reconnecting and finding out what happened takes at least this number of packets. */
#define AGAIN_MAX 16

struct list {
	struct point *points;
	unsigned count, max;
};

static void add(struct list *l, struct point p)
{
	if (l->count == l->max)
		die("more than %u points", l->max);
	l->points[l->count++] = p;
}

/* Both ends of a packet, and places inside: in its header, behind it, in the middle, and before the
 * last byte. */
static unsigned bytes_of(size_t size, unsigned ret[6])
{
	const size_t all[] = {0, 1, 4, size / 2, size - 1, size};
	unsigned n = 0;

	for (unsigned i = 0; i < 6; i++)
		if (n == 0 || all[i] > ret[n - 1])
			ret[n++] = (unsigned)all[i];
	return n;
}

/* For SWALLOW, one place inside a packet is enough, because the others have the same effect. */
static bool is_of_use(enum what what, unsigned byte, size_t size, enum fault_side side)
{
	bool start = byte == 0, middle = byte == size / 2, end = byte == size;

	switch (what) {
	case CUT:
	case CUT_AGAIN:
	case DELAY:
		return true;
	case LATE: /* a packet that has come whole is not late */
		return side == FAULT_REQUESTS ? start || middle : start;
	case SWALLOW:
		return start || middle || end;
	default: /* a fault that lasts has the same effect in the middle as before */
		return start || end;
	}
}

static void add_packet(struct list *l, struct point p, size_t size, enum what what,
                       unsigned *random)
{
	unsigned bytes[6], n = bytes_of(size, bytes);

	p.what = what;
	for (unsigned i = 0; i < n; i++) {
		p.byte = bytes[i];
		p.again = what == CUT_AGAIN ? 1 + (unsigned)rand_r(random) % AGAIN_MAX : 0;
		if (is_of_use(what, p.byte, size, p.side))
			add(l, p);
	}
}

static void swap(struct point *a, struct point *b)
{
	struct point c = *a;

	*a = *b;
	*b = c;
}

static void shuffle(struct point *points, unsigned count, unsigned *random)
{
	for (unsigned i = count; i > 1; i--)
		swap(&points[i - 1], &points[(unsigned)rand_r(random) % i]);
}

static void add_trace(struct list *l, struct point p, const struct fault_trace *trace, bool all,
                      unsigned *random)
{
	for (enum what what = 0; what < WHATS; what++) {
		unsigned first = l->count, packets[2] = {0, 0};

		for (unsigned i = 0; i < trace->count; i++) {
			p.side = (unsigned char)trace->packets[i].side;
			p.packet = packets[p.side]++;
			add_packet(l, p, trace->packets[i].size, what, random);
		}
		if (all || l->count - first <= sample[what])
			continue;
		shuffle(l->points + first, l->count - first, random);
		l->count = first + sample[what];
	}
}

static void explore(struct bench *bench, struct list *l, struct point p, bool all, unsigned *random)
{
	struct run run;

	run_point(bench, &p, &run);
	if (run.why[0])
		bench_renew(bench);
	add(l, p); /* the run without a fault; if it fails, that is a failure like others */
	if (run.trace.count == FAULT_TRACE_MAX)
		die("%s: too many packets", point_text(&p));
	add_trace(l, p, &run.trace, all, random);
}

unsigned find_points(struct point *ret, unsigned max, const char *only, bool all, unsigned seed)
{
	struct list l = {ret, 0, max};
	struct bench bench;

	bench_open(&bench);
	for (unsigned i = 0; i < 2 * scenario_count; i++) {
		if (only && strcmp(only, scenarios[i / 2].name) != 0)
			continue;
		explore(&bench, &l,
		        (struct point){
		                .scenario = (unsigned short)(i / 2), .off = i % 2, .what = NOTHING},
		        all, &seed);
	}
	bench_close(&bench);
	/* So that the slow points do not all come at the same time. */
	shuffle(l.points, l.count, &seed);
	return l.count;
}

/* ---- as text --------------------------------------------------------------------- */

const char *point_text(const struct point *p)
{
	static char text[96];
	char again[16] = "";

	if (p->what == CUT_AGAIN)
		snprintf(again, sizeof(again), ":%u", p->again);
	snprintf(text, sizeof(text), "%s %s %u %u %s%s %s", scenarios[p->scenario].name,
	         side_names[p->side], p->packet, p->byte, what_names[p->what], again,
	         p->off ? "off" : "auto");
	return text;
}

static unsigned find(const char *word, const char *const *names, unsigned count)
{
	unsigned i = 0;

	while (i < count && strcmp(word, names[i]) != 0)
		i++;
	return i;
}

bool point_parse(struct point *ret, char **words)
{
	char *again = strchr(words[4], ':');
	unsigned side = find(words[1], side_names, 2);
	unsigned what;

	if (again)
		*again++ = '\0';
	what = find(words[4], what_names, WHATS + 1);
	*ret = (struct point){.side = (unsigned char)side,
	                      .packet = (unsigned)strtoul(words[2], NULL, 10),
	                      .byte = (unsigned)strtoul(words[3], NULL, 10),
	                      .what = (unsigned char)what,
	                      .again = again ? (unsigned)strtoul(again, NULL, 10) : 0,
	                      .off = strcmp(words[5], "off") == 0};
	while (ret->scenario < scenario_count &&
	       strcmp(words[0], scenarios[ret->scenario].name) != 0)
		ret->scenario++;
	return ret->scenario < scenario_count && side < 2 && what <= WHATS;
}
