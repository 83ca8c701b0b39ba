/* The public door of the reaper. */
#include "api/args.h"
#include "api/door.h"
#include "client/admin/admin.h"

int bizlock_reap(bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result *ret)
{
	struct bl_err mine = {.code = BIZLOCK_OK};
	bizlock_reap_result done;
	bizlock_reap_opts o;
	int rc = bl_door_in(b, "reap", &mine, bl_args_reap(opts, ret, &o, &mine));

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_client_reap(b, &o, &done, &mine);
	if (rc == BIZLOCK_OK && ret)
		bl_args_give(ret, &done, sizeof(done));
	return bl_door_out(b, "reap", &mine, rc);
}
