/* Requests that wait for a time, in order: a heap. With the mutex held. */
#ifndef BL_CLIENT_REQUEST_OP_TIMES_H
#define BL_CLIENT_REQUEST_OP_TIMES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

struct bl_ops;
struct bl_op;

bool bl_times_reserve(struct bl_ops *ops, size_t n);        /* room for n; false: no memory */
void bl_times_add(struct bl_ops *ops, struct bl_op *op);    /* by op->until */
void bl_times_remove(struct bl_ops *ops, struct bl_op *op); /* if it is there */
bl_time bl_times_first(const struct bl_ops *ops);
struct bl_op *bl_times_due(struct bl_ops *ops); /* takes it out; NULL: none */

#endif
