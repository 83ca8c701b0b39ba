/* A balanced tree, that of tsearch(3): with 20,000 requests, a walk through a list would be slow
 * for each that is cancelled. */
#include "client/request/op_number.h"

#include <search.h>

#include "client/request/op.h"

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

bool bl_op_give_number(struct bl_ops *ops, struct bl_op *op)
{
	op->number = ops->last_number + 1;
	if (!tsearch(&op->number, &ops->numbered, compare))
		return false;
	ops->last_number = op->number;
	return true;
}

void bl_op_drop_number(struct bl_ops *ops, struct bl_op *op)
{
	tdelete(&op->number, &ops->numbered, compare);
}

struct bl_op *bl_op_find(const struct bl_ops *ops, uint64_t number)
{
	void *const *found = tfind(&number, &ops->numbered, compare);

	return BL_LISTED(found ? *found : NULL, struct bl_op, number);
}
