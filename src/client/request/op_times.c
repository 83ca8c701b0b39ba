#include "client/request/op_times.h"

#include <stdlib.h>

#include "client/request/op.h"

bool bl_times_reserve(struct bl_ops *ops, size_t n)
{
	size_t size = ops->timed_size ? ops->timed_size : 64;
	struct bl_op **timed;

	if (n <= ops->timed_size)
		return true;
	while (size < n)
		size *= 2;
	timed = realloc(ops->timed, size * sizeof(struct bl_op *));
	if (!timed)
		return false;
	ops->timed = timed;
	ops->timed_size = size;
	return true;
}

/* Places are counted from 1, so that those below i are 2i and 2i + 1. */
static void set_place(struct bl_ops *ops, size_t at, struct bl_op *op)
{
	ops->timed[at - 1] = op;
	op->at = at;
}

static void sift_up(struct bl_ops *ops, size_t at, struct bl_op *op)
{
	while (at > 1 && ops->timed[at / 2 - 1]->until > op->until) {
		set_place(ops, at, ops->timed[at / 2 - 1]);
		at /= 2;
	}
	set_place(ops, at, op);
}

static void sift_down(struct bl_ops *ops, size_t at, struct bl_op *op)
{
	for (size_t below; (below = 2 * at) <= ops->timed_count; at = below) {
		if (below < ops->timed_count &&
		    ops->timed[below]->until < ops->timed[below - 1]->until)
			below++;
		if (ops->timed[below - 1]->until >= op->until)
			break;
		set_place(ops, at, ops->timed[below - 1]);
	}
	set_place(ops, at, op);
}

void bl_times_add(struct bl_ops *ops, struct bl_op *op)
{
	sift_up(ops, ++ops->timed_count, op);
}

void bl_times_remove(struct bl_ops *ops, struct bl_op *op)
{
	size_t at = op->at;
	struct bl_op *last;

	if (at == 0)
		return;
	op->at = 0;
	last = ops->timed[--ops->timed_count];
	if (last == op)
		return;
	sift_down(ops, at, last);
	sift_up(ops, last->at, last);
}

bl_time bl_times_first(const struct bl_ops *ops)
{
	return ops->timed_count ? ops->timed[0]->until : BL_NEVER;
}

struct bl_op *bl_times_due(struct bl_ops *ops)
{
	struct bl_op *op = ops->timed_count ? ops->timed[0] : NULL;

	if (!op || !bl_passed(op->until))
		return NULL;
	bl_times_remove(ops, op);
	return op;
}
