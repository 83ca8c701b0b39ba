/* The public door for sets of keys. */
#include <stdlib.h>

#include "api/args.h"
#include "api/door.h"
#include "client/giveback/release.h"
#include "client/request/acquire.h"

/* Every OK needs a bl_door_out() and a free(*ret). */
static int begin_set(bizlock *b, const bizlock_key *keys, size_t n, const char *owner,
                     int64_t wait_ms, struct bl_member **ret, struct bl_err *err)
{
	int rc = bl_args_keys(keys, n, err);

	if (rc != BIZLOCK_OK)
		return rc;
	*ret = calloc(n, sizeof(**ret));
	if (!*ret)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_door_members(*ret, b, keys, n, owner, wait_ms, err);
	if (rc != BIZLOCK_OK)
		free(*ret);
	return rc;
}

int bizlock_acquire_all(bizlock *b, const bizlock_key *keys, size_t n,
                        const bizlock_acquire_opts *opts, bizlock_grant *ret)
{
	struct bl_err *err = bl_door_error();
	struct bl_member *members = NULL;
	struct bl_request request;
	bizlock_grant grants[BL_TAKE_MAX];
	bizlock_acquire_opts o;
	int rc = bl_args_acquire(opts, ret, &o, err);

	if (rc == BIZLOCK_OK)
		rc = bl_args_alone(&o, "several keys cannot be acquired", err);
	if (rc == BIZLOCK_OK)
		rc = begin_set(b, keys, n, o.owner, o.wait_ms, &members, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "acquire_all", err, rc);
	request = bl_args_request(&o, &b->config);
	rc = bl_client_acquire(members, n, &request, grants);
	if (rc == BIZLOCK_OK && ret)
		bl_args_grants(grants, n, ret);
	free(members);
	return bl_door_out(b, "acquire_all", err, rc);
}

int bizlock_release_all(bizlock *b, const bizlock_key *keys, size_t n, const char *owner)
{
	struct bl_err *err = bl_door_error(), first;
	struct bl_member *members = NULL;
	int rc = begin_set(b, keys, n, owner, 0, &members, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "release_all", err, rc);
	bl_client_release_all(members, n, &first);
	if (first.code != BIZLOCK_OK)
		*err = first;
	free(members);
	return bl_door_out(b, "release_all", err, first.code);
}
