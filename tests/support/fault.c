#include "fault.h"

enum { HEADER = 4 };

static bool fires_here(struct fault_plan *plan, enum fault_side side,
                       const struct fault_place *place)
{
	const struct fault *f = &plan->fault;

	plan->fired |= f->what != FAULT_NONE && !plan->fired && f->side == side &&
	               f->packet == place->number && f->byte == place->at;
	return plan->fired;
}

static void record(struct fault_plan *plan, enum fault_side side, const struct fault_place *place)
{
	struct fault_trace *t = &plan->trace;

	if (t->count < FAULT_TRACE_MAX)
		t->packets[t->count++] = (struct fault_packet){side, place->size};
}

/* How many of n bytes lie before the next one that has to be looked at. */
static size_t stride(const struct fault_plan *plan, const struct fault_place *place, size_t n)
{
	size_t step = place->at < HEADER ? 1 : place->size - place->at;

	if (plan->fault.byte > place->at && plan->fault.byte - place->at < step)
		step = plan->fault.byte - place->at;
	return step < n ? step : n;
}

static void advance(struct fault_plan *plan, enum fault_side side, struct fault_place *place,
                    const char *bytes, size_t step, unsigned *packets)
{
	if (place->at < HEADER)
		place->head[place->at] = (unsigned char)*bytes;
	place->at += step;
	if (place->at == HEADER && step == 1) {
		place->size = HEADER + (place->head[0] | (size_t)place->head[1] << 8 |
		                        (size_t)place->head[2] << 16);
		record(plan, side, place);
		++*packets;
	}
}

size_t fault_follow(struct fault_plan *plan, enum fault_side side, struct fault_place *place,
                    const char *bytes, size_t n, unsigned *packets)
{
	bool before = plan->fired;
	size_t through = n;

	for (size_t i = 0, step; i < n; i += step) {
		if (place->at == 0)
			place->number = plan->begun[side]++;
		if (place->at == 0 && fires_here(plan, side, place) && !before) {
			through = i;
			before = true;
		}
		step = stride(plan, place, n - i);
		advance(plan, side, place, bytes + i, step, packets);
		if (fires_here(plan, side, place) && !before) {
			through = i + step;
			before = true;
		}
		if (place->at >= HEADER && place->at == place->size)
			place->at = 0;
	}
	return through;
}
