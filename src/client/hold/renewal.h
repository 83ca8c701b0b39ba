/* One round of the renewer: renews the holds that are due, and notes the answers. */
#ifndef BL_CLIENT_HOLD_RENEWAL_H
#define BL_CLIENT_HOLD_RENEWAL_H

#include "client/hold/hold.h"

/* Renews the first n of the renewer's items, which share their lease. The mutex is free. */
int bl_renewal_run(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err);

/* Tries to make the renewer's own connection, until `until`. The mutex is free. */
void bl_renewal_prepare(struct bizlock *b, bl_time until);

#endif
