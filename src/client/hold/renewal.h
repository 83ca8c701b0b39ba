/* One round of the renewer: sends the renewal of what is due, and notes the answers. */
#ifndef BL_CLIENT_HOLD_RENEWAL_H
#define BL_CLIENT_HOLD_RENEWAL_H

#include "client/hold/hold.h"

/* Renews the first n of the renewer's items, which share their lease. The mutex is free. */
int bl_renewal_run(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err);

/* Makes the renewer's own connection, if that can be had until then. The mutex is free. */
void bl_renewal_prepare(struct bizlock *b, bl_time until);

#endif
