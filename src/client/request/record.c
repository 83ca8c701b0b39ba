#include "client/request/record.h"

#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "store/table/runs.h"

struct recording {
	struct bl_ref ref;
	uint32_t lease_ms; /* 0: the hold's row tells when the lease ends */
	bool lost;
	bizlock_run_result result; /* of a run that ends */
};

/* Notes what is to be written of the hold of this call's owner. The hold is not busy while the
 * statement is under way: a table that somebody has locked must not keep a release waiting. */
static int note_hold(struct bl_call *call, struct recording *ret)
{
	struct bl_hold *h;
	int rc;

	bl_lock(call->client);
	h = bl_hold_begin_held(call, &rc);
	if (h && h->flags & BIZLOCK_SHARED)
		rc = bl_err_set(call->err, BIZLOCK_INVALID,
		                "the lock is shared, and only one run of a key is recorded");
	if (h) {
		ret->ref = bl_hold_ref(call, h);
		ret->lease_ms = h->min_hold_ms ? h->lease_ms : 0;
		ret->lost = h->state != BL_HOLD_HELD;
		bl_hold_done(call->client, h);
	}
	bl_unlock(call->client);
	return rc;
}

static int write_beginning(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct recording *r = arg;

	return bl_run_begin(s, r->ref, r->lease_ms, err);
}

static int write_end(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct recording *r = arg;

	return bl_run_end(s, r->ref, &r->result, err);
}

int bl_client_run_begin(struct bl_call *call)
{
	struct recording r = {.lost = false};
	int rc = note_hold(call, &r);

	if (rc == BIZLOCK_OK && r.lost)
		return bl_err_set(call->err, BIZLOCK_LOST, "the lock is lost: no run begins");
	return rc == BIZLOCK_OK ? bl_run_twice(call->client, write_beginning, &r, call->err) : rc;
}

int bl_client_run_end(struct bl_call *call, const bizlock_run_result *result)
{
	struct recording r = {.result = *result};
	int rc = note_hold(call, &r);

	if (r.lost)
		r.result.outcome = BIZLOCK_RUN_LOST;
	return rc == BIZLOCK_OK ? bl_run_twice(call->client, write_end, &r, call->err) : rc;
}
