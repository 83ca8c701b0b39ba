/* The public door of the calls that administer a server and its tables. */
#include <stdlib.h>
#include <string.h>

#include "api/args.h"
#include "api/door.h"
#include "base/utf8.h"
#include "client/admin/admin.h"

#define TEXT_MAX 65536 /* bytes; no text comes near it */

int bizlock_doctor(bizlock *b, int (*fn)(void *arg, const bizlock_finding *), void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	int rc = bl_door_visit(b, "doctor", &mine, bl_args_given(fn, "fn", &mine));

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "doctor", &mine, bl_client_doctor(b, fn, arg, &mine));
}

int bizlock_each_migration(bizlock *b, int (*fn)(void *arg, const bizlock_migration *), void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	int rc = bl_door_visit(b, "each_migration", &mine, bl_args_given(fn, "fn", &mine));

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_client_each_migration(b, fn, arg, &mine);
	return bl_door_out(b, "each_migration", &mine, rc);
}

int bizlock_raise_fences(bizlock *b, uint64_t *ret)
{
	struct bl_err *err = bl_door_error();
	uint64_t raised = 0;
	int rc = bl_door_visit(b, "raise_fences", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_client_raise_fences(b, &raised, err);
	if (rc == BIZLOCK_OK && ret)
		*ret = raised;
	return bl_door_out(b, "raise_fences", err, rc);
}

/* The name is shown on terminals, and is part of statements that an administrator runs. */
static int check_account(const char *user, struct bl_err *err)
{
	const char *at = user ? strrchr(user, '@') : NULL;

	if (!user)
		return bl_args_given(false, "user", err);
	if (!user[0] || at == user)
		return bl_err_set(err, BIZLOCK_INVALID, "user has no name");
	if (at && !at[1])
		return bl_err_set(err, BIZLOCK_INVALID, "user has no host after the '@'");
	if (!bl_utf8_valid(user, strlen(user)))
		return bl_err_set(err, BIZLOCK_INVALID, "user is not valid UTF-8");
	for (const char *c = user; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "user has a control character, 0x%02x", *c);
	return BIZLOCK_OK;
}

static int write_grants(bizlock *b, const char *user, bool routines, char *ret, size_t size,
                        size_t *ret_len, struct bl_err *err)
{
	struct bl_buf text = BL_BUF_INIT(TEXT_MAX);
	int rc = bl_client_grants(b, user, routines, &text, err);

	if (rc == BIZLOCK_OK)
		rc = bl_args_text(&text, ret, size, ret_len, err);
	bl_buf_free(&text);
	return rc;
}

static int grants(bizlock *b, const char *call, const char *user, bool routines, char *ret,
                  size_t size, size_t *ret_len)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_args_given(ret, "ret", err);

	if (rc == BIZLOCK_OK)
		rc = check_account(user, err);
	rc = bl_door_visit(b, call, err, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = write_grants(b, user, routines, ret, size, ret_len, err);
	return bl_door_out(b, call, err, rc);
}

int bizlock_grants(bizlock *b, const char *user, char *ret, size_t size, size_t *ret_len)
{
	return grants(b, "grants", user, false, ret, size, ret_len);
}

int bizlock_grants_routines(bizlock *b, const char *user, char *ret, size_t size, size_t *ret_len)
{
	return grants(b, "grants_routines", user, true, ret, size, ret_len);
}

int bizlock_migrate_routines(bizlock *b)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_visit(b, "migrate_routines", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "migrate_routines", err, bl_client_migrate_routines(b, err));
}

int bizlock_drop_routines(bizlock *b)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_visit(b, "drop_routines", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "drop_routines", err, bl_client_drop_routines(b, err));
}

static int check_keys(const bizlock_key *keys, size_t n, struct bl_key **ret, struct bl_err *err)
{
	struct bl_key *checked;

	if (!keys)
		return bl_args_given(false, "keys", err);
	checked = calloc(n, sizeof(*checked));
	if (!checked)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		if (bl_key_make(&checked[i], keys[i], err) == BIZLOCK_OK)
			continue;
		free(checked);
		return bl_err_wrap(err, "keys[%zu]", i);
	}
	*ret = checked;
	return BIZLOCK_OK;
}

int bizlock_waiters(bizlock *b, const bizlock_key *keys, size_t n,
                    int (*fn)(void *arg, const bizlock_waiter *), void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	struct bl_key *checked = NULL;
	int rc = bl_args_given(fn, "fn", &mine);

	if (rc == BIZLOCK_OK && n > 0)
		rc = check_keys(keys, n, &checked, &mine);
	rc = bl_door_in(b, "waiters", &mine, rc);
	if (rc != BIZLOCK_OK) {
		free(checked);
		return rc;
	}
	if (n > 0)
		rc = bl_client_waiters(b, checked, n, fn, arg, &mine);
	free(checked);
	return bl_door_out(b, "waiters", &mine, rc);
}
