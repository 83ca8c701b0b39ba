#include "fault.h"

enum { HEADER = 4 };

/* A second shot is aimed at a packet of unknown size. */
static bool fires_here(struct fault_plan *plan, enum fault_side side,
                       const struct fault_place *place)
{
	const struct fault *f = &plan->fault;
	bool second = plan->shots > 0, end = place->at >= HEADER && place->at == place->size;

	if (f->what == FAULT_NONE || f->side != side || plan->shots > (f->again > 0) ||
	    place->number != f->packet + (second ? f->again : 0) ||
	    !(place->at == f->byte || (second && end && f->byte > place->size)))
		return false;
	plan->shots++;
	return true;
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

/* Takes one step. *ret_fires: at which end of the step the fault fires, if it does. */
enum end { NEITHER, FRONT, BACK };

static size_t take_step(struct fault_plan *plan, enum fault_side side, struct fault_place *place,
                        const char *bytes, size_t n, unsigned *packets, enum end *ret_fires)
{
	size_t step;

	*ret_fires = NEITHER;
	if (place->at == 0) {
		place->number = plan->begun[side]++;
		*ret_fires = fires_here(plan, side, place) ? FRONT : NEITHER;
	}
	step = stride(plan, place, n);
	advance(plan, side, place, bytes, step, packets);
	if (*ret_fires == NEITHER && fires_here(plan, side, place))
		*ret_fires = BACK;
	if (place->at >= HEADER && place->at == place->size)
		place->at = 0;
	return step;
}

size_t fault_follow(struct fault_plan *plan, enum fault_side side, struct fault_place *place,
                    const char *bytes, size_t n, unsigned *packets)
{
	size_t through = n;

	for (size_t i = 0, step; i < n; i += step) {
		enum end fires;

		step = take_step(plan, side, place, bytes + i, n - i, packets, &fires);
		if (fires == NEITHER)
			continue;
		through = fires == FRONT ? i : i + step;
		if (plan->fault.what != FAULT_DELAY)
			break; /* nobody will see the rest */
	}
	return through;
}
