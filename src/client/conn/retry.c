#include "client/conn/retry.h"

#include "core/backoff.h"
#include "core/wait.h"
#include "store/session/errclass.h"

void bl_count_retry(struct bl_numbers *n, const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	if (class == BL_CLASS_RETRY)
		bl_count(n, BL_COUNT_RETRIED_CONFLICT);
	else if (class == BL_CLASS_STOPPED)
		bl_count(n, BL_COUNT_RETRIED_STOPPED);
	else if (class == BL_CLASS_GONE || class == BL_CLASS_DOUBT)
		bl_count(n, BL_COUNT_RETRIED_LOST);
}

/* ---- one try --------------------------------------------------------------------------- */

int bl_lend(struct bl_call *call, struct bl_conn **ret)
{
	struct bl_patience patience = {.end = call->io_deadline, .comes_again = call->comes_again};

	return bl_pool_take(&call->client->pool, patience, ret, call->err);
}

int bl_try(struct bl_call *call, struct bl_conn *conn, bl_statement *fn, void *arg,
           struct bl_tried *tried)
{
	int rc;

	bl_unlock(call->client);
	tried->sent = bl_now();
	rc = fn(&conn->session, arg, call->err);
	if (rc == BIZLOCK_DB && bl_waited_in_vain(call->err))
		bl_lock_name(&conn->session, call->err);
	bl_lock(call->client);
	tried->repeated |= rc == BIZLOCK_CONN && bl_may_have_run(call->err);
	return rc;
}

bool bl_may_heal(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return err->code == BIZLOCK_CONN || class == BL_CLASS_RETRY || class == BL_CLASS_STOPPED;
}

bool bl_may_be_swapped(const struct bl_err *err, bl_time *since)
{
	if (bl_classify(err->native) != BL_CLASS_MISSING)
		return false;
	if (!*since)
		*since = bl_now();
	return !bl_passed(*since + BL_SWAP_NS);
}

static bool may_be_momentary(const struct bl_call *call, struct bl_tried *tried)
{
	if (bl_may_be_swapped(call->err, &tried->missing_at))
		return call->client->state != BL_CLIENT_CLOSING;
	if (call->err->code != BIZLOCK_BUSY)
		return false;
	if (!tried->fenced_at)
		tried->fenced_at = bl_now();
	return tried->stalls || !bl_passed(tried->fenced_at + BL_MOMENT_NS);
}

bool bl_try_again(struct bl_call *call, struct bl_tried *tried, unsigned attempt)
{
	struct bizlock *b = call->client;
	bool again = may_be_momentary(call, tried);

	if (bl_may_heal(call->err))
		again = b->state != BL_CLIENT_CLOSING && !bl_call_interrupted(call);
	if (!again || bl_passed(call->io_deadline))
		return false;
	bl_count_retry(&b->numbers, call->err);
	bl_call_pause(call, bl_now() + bl_backoff_ns(attempt, bl_random(b)));
	return true;
}

int bl_tried_rc(struct bl_call *call, const struct bl_tried *tried, int rc)
{
	if (rc != BIZLOCK_OK && tried->repeated)
		return call->err->code = BIZLOCK_UNKNOWN;
	if (rc != BIZLOCK_OK && bl_may_heal(call->err) && bl_call_interrupted(call))
		return bl_call_check(call);
	return rc;
}

/* ---- all of them ----------------------------------------------------------------------- */

int bl_run(struct bl_call *call, bl_statement *fn, void *arg, struct bl_tried *ret)
{
	struct bl_tried tried = {.repeated = false};
	struct bl_conn *conn;
	unsigned attempt = 0;
	int rc;

	do {
		rc = bl_lend(call, &conn);
		if (rc == BIZLOCK_OK) {
			rc = bl_try(call, conn, fn, arg, &tried);
			bl_pool_put(&call->client->pool, conn);
		}
	} while (rc != BIZLOCK_OK && bl_try_again(call, &tried, attempt++));
	if (ret)
		*ret = tried;
	return bl_tried_rc(call, &tried, rc);
}

int bl_read(struct bl_call *call, bl_statement *fn, void *arg)
{
	int rc = bl_run(call, fn, arg, NULL);

	return rc == BIZLOCK_UNKNOWN ? call->err->code = BIZLOCK_CONN : rc;
}

struct look {
	struct bl_call *call;
	struct bl_row *row;
};

static int look_at_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	const struct look *l = arg;

	return bl_lock_look(s, &l->call->key, bl_call_bell(l->call), l->row, err);
}

int bl_look(struct bl_call *call, struct bl_row *ret)
{
	struct look l = {call, ret};

	return bl_read(call, look_at_row, &l);
}

int bl_run_once(struct bizlock *b, bl_time end, bl_statement *fn, void *arg, struct bl_err *err)
{
	struct bl_patience patience = {.end = end};
	struct bl_conn *conn;
	int rc;

	bl_lock(b);
	rc = bl_pool_take(&b->pool, patience, &conn, err);
	bl_unlock(b);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = fn(&conn->session, arg, err);
	bl_lock(b);
	bl_pool_put(&b->pool, conn);
	bl_unlock(b);
	return rc;
}

int bl_run_twice(struct bizlock *b, bl_statement *fn, void *arg, struct bl_err *err)
{
	int64_t ms = b->config.io_timeout_ms;
	int rc = bl_run_once(b, bl_deadline_in_ms(ms), fn, arg, err);

	if (rc != BIZLOCK_CONN)
		return rc;
	bl_count_retry(&b->numbers, err);
	return bl_run_once(b, bl_deadline_in_ms(ms), fn, arg, err);
}
