/* One round of renewing: what the renewer has gathered, sent and taken note of. */
#ifndef BL_CLIENT_RENEWAL_H
#define BL_CLIENT_RENEWAL_H

#include "client/hold.h"

/* Mutex free. The first n of the renewer's items, which share their lease. */
int bl_renewal_run(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err);

/* With the mutex held: the hold that an item stands for, if it is still there. */
struct bl_hold *bl_renewal_find(struct bizlock *b, const struct bl_item *item);

#endif
