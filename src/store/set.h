/* Several rows by one text: taken all or none, dropped together. */
#ifndef BL_STORE_SET_H
#define BL_STORE_SET_H

#include "store/many.h"
#include "store/take.h"

/* See bl_take() and bl_take_again(), of which these are the part for more than one. */
int bl_set_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                size_t n, struct bl_ring ring, enum bl_took *ret, bool *ret_over,
                struct bl_err *err);
int bl_set_draw_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                      size_t n, struct bl_err *err);

/* Gives the doorbells back, or the session up. */
void bl_set_free_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n);

/* ret_dropped[i]: the hold was there, and is gone now. rings: with the doorbells, as far as the
 * session has them; else, if the items have their names, wakes those that wait. CONN, DB, NOMEM. */
int bl_set_drop(struct bl_session *s, const struct bl_item *items, size_t n, const char *suffix,
                bool rings, bool *ret_dropped, struct bl_err *err);

#endif
