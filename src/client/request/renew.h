/* What a holder may ask of its own hold: more time, to share it, and what is known of it without a
 * round trip. */
#ifndef BL_CLIENT_REQUEST_RENEW_H
#define BL_CLIENT_REQUEST_RENEW_H

#include "client/state.h"

/* For a hold that is busy and not `renewing`, with the mutex held. hold: bl_client_renew() without
 * its wait for the renewer. in_vain: the answer if that wait is in vain. */
int bl_renew_hold(struct bl_call *call, struct bl_hold *h, uint32_t lease_ms);
int bl_renew_in_vain(struct bl_call *call);

int bl_client_renew(struct bl_call *call, uint32_t lease_ms);
int bl_client_downgrade(struct bl_call *call);
int bl_client_last_renewal(struct bl_call *call);
int bl_client_held(struct bl_call *call, bizlock_grant *ret);
int64_t bl_client_left_ms(struct bl_call *call);

#endif
