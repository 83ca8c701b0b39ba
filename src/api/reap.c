/* The public door of the reaper. */
#include "api/args.h"
#include "api/door.h"
#include "client/ops/ops.h"

int bizlock_reap(bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result *ret)
{
	struct bl_err *err = bl_door_error(), mine;
	bizlock_reap_result done;
	bizlock_reap_opts o;
	int rc = bl_args_reap(opts, ret, &o, err);

	if (rc == BIZLOCK_OK)
		rc = bl_door_enter(b, err);
	if (rc != BIZLOCK_OK)
		return bl_door_finish(b, "reap", err, rc);
	/* The callback may call the library, which would use the thread's scratch. */
	bl_err_clear(&mine);
	rc = bl_client_reap(b, &o, &done, &mine);
	if (rc == BIZLOCK_OK && ret)
		bl_args_give_reaped(&done, ret);
	return bl_door_out(b, "reap", &mine, rc);
}
