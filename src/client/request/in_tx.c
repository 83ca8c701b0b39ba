#include "client/request/in_tx.h"

#include "client/conn/retry.h"
#include "client/hold/hold.h"
#include "client/request/verify.h"
#include "store/tx/tx_connect.h"

static struct bl_tx tx_of(const struct bl_call *call, MYSQL *mysql)
{
	struct bl_tx tx = {
	        .mysql = mysql, .sql = &call->client->sql, .server = &call->client->server};

	bl_failover_server(call->client->failover, tx.identity);
	return tx;
}

int bl_client_tx_connect(struct bizlock *b, MYSQL *mysql, struct bl_err *err)
{
	return bl_tx_connect(b->failover, mysql, err);
}

/* stays: the row stays locked when the call has returned. */
static struct bl_ref note_fence(struct bl_call *call, struct bl_hold *h, bool stays)
{
	bl_call_follow(call, h);
	if (stays)
		h->fenced = h->told = true;
	return bl_hold_ref(call, h);
}

/* The hold is not made busy: a transaction may take its time, and the lease must go on
 * being renewed. The fence does not change while the hold lasts. */
static int find_fence(struct bl_call *call, bool stays, struct bl_ref *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc = BIZLOCK_OK;

	bl_lock(b);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	if (!h || h->state == BL_HOLD_ACQUIRING)
		rc = bl_hold_none(call);
	else if (h->state == BL_HOLD_LOST)
		rc = bl_hold_lost(call, h);
	else
		*ret = note_fence(call, h, stays);
	bl_unlock(b);
	return rc;
}

/* The server says that the hold is over: from here on, all calls on it answer LOST. Unless another
 * thread has made it a shared hold meanwhile: then the transaction alone is refused. */
static int lose(struct bl_call *call, uint64_t fence)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;

	bl_lock(b);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	if (h && h->state == BL_HOLD_HELD && h->fence == fence && h->key.slot == call->key.slot)
		bl_hold_lose(b, h, BL_LOSS_GONE);
	bl_unlock(b);
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "the hold is over: the transaction must not "
	                  "be committed");
}

static int refuse_stale(struct bl_call *call)
{
	return bl_err_set(call->err, BIZLOCK_STALE,
	                  "the transaction has read before the lock was acquired, and may undo "
	                  "what was written since: acquire, then begin");
}

/* The call's answer, by that of the server. */
static int judge(struct bl_call *call, const struct bl_ref *ref, enum bl_fenced fenced)
{
	switch (fenced) {
	case BL_FENCED:
		return BIZLOCK_OK;
	case BL_FENCED_STALE:
		return refuse_stale(call);
	default:
		return lose(call, ref->fence);
	}
}

int bl_client_tx_fence(struct bl_call *call, MYSQL *mysql)
{
	struct bl_tx tx = tx_of(call, mysql);
	struct bl_ref ref = {.key = NULL};
	enum bl_fenced fenced = BL_FENCED_NOT;
	int rc = bl_tx_check(mysql, call->err);

	if (rc == BIZLOCK_OK)
		rc = find_fence(call, true, &ref);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_tx_fence(&tx, ref, &fenced, call->err);
	return rc == BIZLOCK_OK ? judge(call, &ref, fenced) : rc;
}

int bl_client_tx_commit(struct bl_call *call, MYSQL *mysql)
{
	struct bl_tx tx = tx_of(call, mysql);
	struct bl_ref ref = {.key = NULL};
	enum bl_fenced fenced = BL_FENCED_NOT;
	int rc = bl_tx_check(mysql, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = find_fence(call, false, &ref);
	if (rc != BIZLOCK_OK)
		return bl_tx_rollback(&tx, rc, call->err);
	rc = bl_tx_commit(&tx, ref, &fenced, call->err);
	return rc == BIZLOCK_OK ? judge(call, &ref, fenced) : rc;
}

/* Finds whose hold it is. If it is this client's own, its renewals will find the row locked. */
static int find_holder(struct bl_call *call, uint64_t fence, struct bl_row *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc;

	bl_lock(b);
	rc = bl_verify_find(call, fence, ret);
	h = rc == BIZLOCK_OK ? bl_held_with_fence(&b->held, &call->key, fence) : NULL;
	if (h)
		note_fence(call, h, true);
	bl_unlock(b);
	return rc;
}

int bl_client_tx_verify_fence(struct bl_call *call, uint64_t fence, MYSQL *mysql)
{
	struct bl_tx tx = tx_of(call, mysql);
	enum bl_fenced fenced = BL_FENCED_NOT;
	struct bl_row row;
	int rc = bl_tx_check(mysql, call->err);

	if (rc == BIZLOCK_OK)
		rc = find_holder(call, fence, &row);
	if (rc == BIZLOCK_OK)
		rc = bl_tx_fence(
		        &tx, (struct bl_ref){.key = &call->key, .owner = row.owner, .fence = fence},
		        &fenced, call->err);
	if (rc != BIZLOCK_OK || fenced == BL_FENCED)
		return rc;
	if (fenced == BL_FENCED_STALE)
		return refuse_stale(call);
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "its hold has ended: the transaction must not be committed");
}

struct row {
	const struct bl_key *key;
	bool there;
};

static int provide_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct row *r = arg;

	return bl_row_provide(s, r->key, &r->there, err);
}

static int look_for_row(struct bl_session *s, void *arg, struct bl_err *err)
{
	struct row *r = arg;

	return bl_row_look(s, r->key, &r->there, err);
}

/* The row is made outside of the transaction, which may end by a ROLLBACK. It is made before the
 * transaction looks for it: to look for a row that is not there would lock the gap against our
 * own INSERT. */
static int ask_row(struct bl_call *call, bl_statement *fn, bool *ret_there)
{
	struct row r = {&call->key, false};
	int rc;

	bl_lock(call->client);
	rc = bl_run(call, fn, &r, NULL);
	bl_unlock(call->client);
	*ret_there = r.there;
	return rc;
}

/* The row was not found: skipped because somebody has it locked, or purged in between. */
static int not_found(struct bl_call *call, const struct bl_tx *tx, enum bl_row_got *ret)
{
	bool there;
	int rc = ask_row(call, look_for_row, &there);

	*ret = BL_ROW_BUSY;
	return rc == BIZLOCK_OK && !there ? bl_tx_make_row(tx, &call->key, ret, call->err) : rc;
}

int bl_client_tx_row_lock(struct bl_call *call, MYSQL *mysql, enum bl_row_how how)
{
	struct bl_tx tx = tx_of(call, mysql);
	enum bl_row_got got = BL_ROW_BUSY;
	bool there;
	int rc = bl_tx_check(mysql, call->err);

	/* On such a server NOWAIT's refusal would roll the caller's transaction back. */
	if (how == BL_ROW_NOWAIT && call->client->server.rollback_on_timeout)
		how = BL_ROW_SKIP;
	if (rc == BIZLOCK_OK)
		rc = ask_row(call, provide_row, &there);
	if (rc == BIZLOCK_OK)
		rc = bl_tx_lock_row(&tx, &call->key, how, &got, call->err);
	if (rc == BIZLOCK_OK && got == BL_ROW_MISSING)
		rc = not_found(call, &tx, &got);
	if (rc == BIZLOCK_OK && got != BL_ROW_LOCKED)
		rc = bl_err_set(call->err, BIZLOCK_BUSY, "another transaction has the row lock");
	return rc;
}
