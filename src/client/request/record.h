/* Records the runs of a job: what its holder says of the beginning and the end. Functions are
 * entered with the mutex free. */
#ifndef BL_CLIENT_REQUEST_RECORD_H
#define BL_CLIENT_REQUEST_RECORD_H

#include "client/state.h"

int bl_client_run_begin(struct bl_call *call);
int bl_client_run_end(struct bl_call *call, const bizlock_run_result *result);

#endif
