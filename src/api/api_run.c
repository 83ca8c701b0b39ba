/* The public door of runs. */
#include "api/args.h"
#include "api/door.h"
#include "client/admin/admin.h"
#include "client/request/record.h"

int bizlock_run_begin(bizlock *b, bizlock_key key, const char *owner)
{
	struct bl_call call;
	int rc = bl_door_call(&call, b, key, owner, "run_begin");

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "run_begin", bl_client_run_begin(&call));
}

int bizlock_run_end(bizlock *b, bizlock_key key, const char *owner,
                    const bizlock_run_result *result)
{
	struct bl_err *err = bl_door_error();
	struct bl_call call;
	bizlock_run_result known;
	int rc = bl_args_result(result, &known, err);

	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "run_end", err, rc);
	rc = bl_door_call(&call, b, key, owner, "run_end");
	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_called(&call, "run_end", bl_client_run_end(&call, &known));
}

static int check_filter(const char *biz_type, const char *biz_id, struct bl_err *err)
{
	struct bl_key key;

	if (!biz_type)
		return bl_args_given(!biz_id, "biz_id is given, and biz_type", err);
	return biz_id ? bl_key_make(&key, (bizlock_key){biz_type, biz_id}, err)
	              : bl_type_check(biz_type, err);
}

int bizlock_each_run(bizlock *b, const char *biz_type, const char *biz_id,
                     int (*fn)(void *arg, const bizlock_run *), void *arg)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	int rc = check_filter(biz_type, biz_id, &mine);

	if (rc == BIZLOCK_OK)
		rc = bl_args_given(fn, "fn", &mine);
	rc = bl_door_in(b, "each_run", &mine, rc);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_client_each_run(b, biz_type, biz_id, fn, arg, &mine);
	return bl_door_out(b, "each_run", &mine, rc);
}
