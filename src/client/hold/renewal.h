/* One round of renewing: what the renewer has gathered, sent and taken note of. */
#ifndef BL_CLIENT_HOLD_RENEWAL_H
#define BL_CLIENT_HOLD_RENEWAL_H

#include "client/hold/hold.h"

/* Mutex free. The first n of the renewer's items, which share their lease. */
int bl_renewal_run(struct bizlock *b, size_t n, uint32_t lease_ms, struct bl_err *err);

#endif
