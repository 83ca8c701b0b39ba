/* What pool.c and sleepers.c share. */
#ifndef BL_CLIENT_CONN_POOL_PARTS_H
#define BL_CLIENT_CONN_POOL_PARTS_H

#include "client/conn/pool.h"

/* Of the idle connections that can take `bells` more doorbells, one that has some already is
 * better: the others stay fit for waiting at a doorbell. */
struct bl_conn *bl_pool_pick_idle(struct bl_pool *p, unsigned bells, bool or_any);

/* Lends an idle one, connected, and with no lost one before it that could still do anything. */
int bl_pool_lend(struct bl_pool *p, struct bl_conn *c, struct bl_conn **ret, struct bl_err *err);

/* Is it the last one that is awake, and to be kept so for the renewer? */
bool bl_pool_is_reserve(const struct bl_pool *p, const struct bl_conn *c);

#endif
