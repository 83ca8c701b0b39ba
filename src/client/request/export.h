/* Export and import: a hold goes from one client to another, by a text, which is the ticket. */
#ifndef BL_CLIENT_REQUEST_EXPORT_H
#define BL_CLIENT_REQUEST_EXPORT_H

#include "client/state.h"
#include "core/ticket.h"

int bl_client_export(struct bl_call *call, char *ret, size_t size);

/* call: of the ticket's key. */
int bl_client_import(struct bl_call *call, const struct bl_ticket *ticket, bizlock_grant *ret);

#endif
