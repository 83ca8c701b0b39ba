/* Requests that are not done, by their numbers. With the mutex held. */
#ifndef BL_CLIENT_REQUEST_OP_NUMBER_H
#define BL_CLIENT_REQUEST_OP_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

struct bl_ops;
struct bl_op;

bool bl_op_give_number(struct bl_ops *ops, struct bl_op *op); /* false: no memory */
void bl_op_drop_number(struct bl_ops *ops, struct bl_op *op);
struct bl_op *bl_op_find(const struct bl_ops *ops, uint64_t number); /* NULL: there is none */

#endif
