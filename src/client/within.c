#include "client/within.h"

#include "client/hold.h"

static struct bl_tx tx_of(const struct bl_call *call, MYSQL *mysql)
{
	return (struct bl_tx){mysql, &call->client->sql, &call->client->server};
}

/* Not made busy: a transaction may take its time, and the lease must go on being
 * renewed. The fence does not change while the hold lasts. */
static int find_fence(struct bl_call *call, struct bl_ref *ret)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;
	int rc = BIZLOCK_OK;

	pthread_mutex_lock(&b->mu);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	if (!h || h->state == BL_HOLD_ACQUIRING)
		rc = bl_hold_none(call);
	else if (h->state == BL_HOLD_LOST)
		rc = bl_err_set(call->err, BIZLOCK_LOST, "the hold is over");
	else
		*ret = bl_hold_ref(call, h);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

/* The server says that the hold is over: all that ask are told so from here on. */
static int lose(struct bl_call *call, uint64_t fence)
{
	struct bizlock *b = call->client;
	struct bl_hold *h;

	pthread_mutex_lock(&b->mu);
	h = bl_held_find(&b->held, &call->key, &call->owner);
	if (h && h->state == BL_HOLD_HELD && h->fence == fence)
		bl_lose(b, h, BL_LOSS_GONE);
	pthread_mutex_unlock(&b->mu);
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "the hold is over: the transaction must not "
	                  "be committed");
}

int bl_within_fence(struct bl_call *call, MYSQL *mysql)
{
	struct bl_tx tx = tx_of(call, mysql);
	struct bl_ref ref;
	bool held = false;
	int rc = bl_tx_check(mysql, call->err);

	if (rc == BIZLOCK_OK)
		rc = find_fence(call, &ref);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_tx_fence(&tx, ref, &held, call->err);
	return rc == BIZLOCK_OK && !held ? lose(call, ref.fence) : rc;
}

int bl_within_commit(struct bl_call *call, MYSQL *mysql)
{
	struct bl_tx tx = tx_of(call, mysql);
	struct bl_ref ref;
	bool held = false;
	int rc = bl_tx_check(mysql, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = find_fence(call, &ref);
	if (rc != BIZLOCK_OK) {
		bl_tx_rollback(&tx);
		return rc;
	}
	rc = bl_tx_commit(&tx, ref, &held, call->err);
	return rc == BIZLOCK_OK && !held ? lose(call, ref.fence) : rc;
}

/* Made outside of the transaction, which may end by a ROLLBACK: and beforehand, for
 * to look for a row that is not there would lock the gap against our own INSERT. */
static int provide_row(struct bl_call *call)
{
	struct bl_change change = {.what = BL_CHANGE_ROW, .ref = {.key = &call->key}};

	return bl_retry_change(call, &change);
}

int bl_within_row_lock(struct bl_call *call, MYSQL *mysql, enum bl_row_how how)
{
	struct bl_tx tx = tx_of(call, mysql);
	enum bl_row_got got = BL_ROW_BUSY;
	int rc = bl_tx_check(mysql, call->err);

	if (rc == BIZLOCK_OK)
		rc = provide_row(call);
	if (rc == BIZLOCK_OK)
		rc = bl_tx_lock_row(&tx, &call->key, how, &got, call->err);
	/* Purged in between. (SKIP LOCKED does not tell: then its INSERT does.) */
	if (rc == BIZLOCK_OK && got == BL_ROW_MISSING && how != BL_ROW_SKIP)
		rc = bl_tx_make_row(&tx, &call->key, &got, call->err);
	if (rc == BIZLOCK_OK && got != BL_ROW_LOCKED)
		rc = bl_err_set(call->err, BIZLOCK_BUSY, "another transaction has the row lock");
	return rc;
}
