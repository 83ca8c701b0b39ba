/* The public door for sets of keys. */
#include <stdlib.h>

#include "api/args.h"
#include "api/door.h"
#include "client/giveback/release.h"
#include "client/request/acquire.h"

static int check_count(size_t n, struct bl_err *err)
{
	if (n >= 1 && n <= BL_TAKE_MAX)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID, "n is %zu: 1 to %d keys", n, BL_TAKE_MAX);
}

static int check_members(const bizlock_key *keys, size_t n, struct bl_member *members,
                         struct bl_err *err)
{
	for (size_t i = 0; i < n; i++) {
		int rc = bl_key_make(&members[i].call.key, keys[i], err);

		if (rc == BIZLOCK_OK)
			rc = bl_key_check_taken(&members[i].call.key, err);
		if (rc != BIZLOCK_OK)
			return bl_err_wrap(err, "keys[%zu]", i);
	}
	return BIZLOCK_OK;
}

/* Checks the arguments, enters the client, and begins a call for each key. Every OK needs a
 * bl_door_out() and a free(*ret). */
static int begin_set(bizlock *b, const bizlock_key *keys, size_t n, const char *owner,
                     int64_t wait_ms, struct bl_member **ret, struct bl_err *err)
{
	struct bl_member *members;
	struct bl_owner who;
	int rc = check_count(n, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (!keys)
		return bl_args_given(false, "keys", err);
	rc = bl_owner_make(&who, owner, err);
	if (rc != BIZLOCK_OK)
		return rc;
	members = calloc(n, sizeof(*members));
	if (!members)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = check_members(keys, n, members, err);
	if (rc == BIZLOCK_OK)
		rc = bl_door_enter(b, err);
	if (rc != BIZLOCK_OK) {
		free(members);
		return rc;
	}
	for (size_t i = 0; i < n; i++) {
		struct bl_key key = members[i].call.key;

		members[i].index = i;
		bl_call_begin(&members[i].call, b, &key, &who, wait_ms, err);
	}
	*ret = members;
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
