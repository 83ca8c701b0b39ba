/* The public door of export and import. */
#include <string.h>

#include "api/args.h"
#include "api/door.h"
#include "client/request/export.h"

int bizlock_export(bizlock *b, bizlock_key key, const char *owner, char *ret, size_t size)
{
	struct bl_err *err = bl_door_error();
	struct bl_call call;
	int rc = bl_args_given(ret, "ret", err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "export", err, rc);
	rc = bl_door_call(&call, b, key, owner, "export");
	return rc == BIZLOCK_OK
	               ? bl_door_called(&call, "export", bl_client_export(&call, ret, size))
	               : rc;
}

int bizlock_import(bizlock *b, const char *text, const char *owner, bizlock_grant *ret)
{
	struct bl_err *err = bl_door_error();
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock_acquire_opts ignored;
	struct bl_ticket ticket;
	struct bl_owner who;
	struct bl_key checked;
	struct bl_call call;
	int rc = bl_args_acquire(NULL, ret, &ignored, err);

	if (rc == BIZLOCK_OK)
		rc = bl_ticket_read(text, &ticket, err);
	if (rc == BIZLOCK_OK)
		rc = bl_door_name(b, (bizlock_key){ticket.key.type, ticket.key.id}, owner, &checked,
		                  &who, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "import", err, rc);
	rc = bl_door_begin(&call, b, &ticket.key, &who, 0, "import", err);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_client_import(&call, &ticket, &grant);
	if (rc == BIZLOCK_OK && ret)
		bl_args_give(ret, &grant, sizeof(grant));
	return bl_door_called(&call, "import", rc);
}

int bizlock_exported_key(bizlock *b, const char *text, char *ret_type, char *ret_id)
{
	struct bl_err *err = bl_door_error();
	struct bl_ticket ticket = {.depth = 0};
	int rc = bl_args_given(ret_type, "ret_type", err);

	if (rc == BIZLOCK_OK)
		rc = bl_args_given(ret_id, "ret_id", err);
	if (rc == BIZLOCK_OK)
		rc = bl_ticket_read(text, &ticket, err);
	rc = bl_door_visit(b, "exported_key", err, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	memcpy(ret_type, ticket.key.type, ticket.key.type_len + 1u);
	memcpy(ret_id, ticket.key.id, ticket.key.id_len + 1u);
	return bl_door_out(b, "exported_key", err, BIZLOCK_OK);
}
