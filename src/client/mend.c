/* Looking at all rows, and breaking one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/hold.h"
#include "store/page.h"

int bl_client_borrow(struct bizlock *b, struct bl_conn **ret, struct bl_err *err)
{
	struct bl_patience patience = {.end = bl_deadline_in_ms(b->config.io_timeout_ms)};
	int rc;

	pthread_mutex_lock(&b->mu);
	rc = bl_pool_take(&b->pool, patience, ret, err);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

void bl_client_give_back(struct bizlock *b, struct bl_conn *conn)
{
	pthread_mutex_lock(&b->mu);
	bl_pool_put(&b->pool, conn);
	pthread_mutex_unlock(&b->mu);
}

/* A holder that has to be broken most often hangs: it would keep the doorbell,
 * and those who wait at it would sleep to the end of the lease they saw. */
static void wake_waiters(struct bl_call *call, uint64_t keeper)
{
	struct bl_change change = {.what = BL_CHANGE_KICK, .keeper = keeper};

	if (keeper)
		bl_retry_change(call, &change); /* what it could not do, a lease's end will */
}

/* Nothing was broken: why? */
static int not_broken(struct bl_call *call, const struct bl_change *change)
{
	struct bl_row row;
	char holder[320];
	int rc = bl_retry_look(call, &row, call->err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (row.found && row.left_us > 0) {
		bl_describe(&row, holder, sizeof(holder));
		return bl_err_set(call->err, BIZLOCK_BUSY, "%s", holder);
	}
	/* Gone, and a reply was lost on the way: it was this call that broke it. */
	if (change->repeated)
		return BIZLOCK_OK;
	return bl_err_set(call->err, BIZLOCK_LOST,
	                  "nobody holds it with fence %" PRIu64 " any more", change->ref.fence);
}

/* What this client has broken of its own it need not be told by the server; nor could it,
 * once the reply to a release is lost with the connection that is ended below. Unless it
 * was seen who removed the row, a call that is at work on the hold may have done that. */
static void lose_broken(struct bl_call *call, const struct bl_change *change)
{
	struct bizlock *b = call->client;

	pthread_mutex_lock(&b->mu);
	for (struct bl_hold *h = bl_held_of_key(&b->held, &call->key); h;
	     h = bl_held_next_of_key(h))
		if (h->state == BL_HOLD_HELD && h->fence == change->ref.fence &&
		    (change->matched || !h->busy))
			bl_lose(b, h, BL_LOSS_BROKEN);
	pthread_mutex_unlock(&b->mu);
}

int bl_client_break(struct bl_call *call, uint64_t seen_fence)
{
	struct bl_change change = {.what = BL_CHANGE_BREAK, .ref = {&call->key, NULL, seen_fence}};
	struct bl_row row;
	int rc = bl_retry_look(call, &row, call->err);

	if (rc == BIZLOCK_OK)
		rc = bl_retry_change(call, &change);
	if (rc == BIZLOCK_OK && !change.matched)
		rc = not_broken(call, &change);
	if (rc == BIZLOCK_OK)
		lose_broken(call, &change);
	if (rc == BIZLOCK_OK && row.found && row.fence == seen_fence)
		wake_waiters(call, row.bell);
	return rc;
}

/* What is read: the row of `key`, or those after `after`, of biz_type or (NULL) of all. */
struct view {
	const struct bl_key *key;
	const char *biz_type;
	struct bl_page_row after;
};

static int read_once(struct bizlock *b, const struct view *v, struct bl_page *ret,
                     struct bl_err *err)
{
	struct bl_conn *conn;
	int rc = bl_client_borrow(b, &conn, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = v->key ? bl_page_read_key(&conn->session, v->key, ret, err)
	            : bl_page_read(&conn->session, &v->after, v->biz_type, ret, err);
	bl_client_give_back(b, conn);
	return rc;
}

static int read_page(struct bizlock *b, const struct view *v, struct bl_page *ret,
                     struct bl_err *err)
{
	int rc = read_once(b, v, ret, err);

	if (rc != BIZLOCK_CONN)
		return rc;
	bl_retry_count(b, err); /* an idle connection may have been closed */
	return read_once(b, v, ret, err);
}

static int show(const struct bl_page_row *row, int (*fn)(void *arg, const bizlock_info *),
                void *arg)
{
	bizlock_info info = {
	        .size = sizeof(info),
	        .biz_type = row->type,
	        .biz_id = row->id,
	        .owner = row->owner,
	        .note = row->note,
	        .fence = row->fence,
	        .left_ms = row->left_us / 1000,
	        .held_ms = row->held_us / 1000,
	        .depth = row->depth,
	};

	return fn(arg, &info);
}

int bl_client_each(struct bizlock *b, const char *biz_type,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err)
{
	struct view v = {.biz_type = biz_type};
	struct bl_page page;
	bool more = true;

	while (more) {
		int rc = read_page(b, &v, &page, err);

		if (rc != BIZLOCK_OK)
			return rc;
		more = page.count == BL_PAGE_ROWS;
		for (size_t i = 0; i < page.count; i++) {
			v.after = page.rows[i];
			if (show(&v.after, fn, arg) != 0) {
				more = false;
				break;
			}
		}
		bl_page_free(&page);
	}
	return BIZLOCK_OK;
}

int bl_client_look(struct bizlock *b, const struct bl_key *key,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err)
{
	struct view v = {.key = key};
	struct bl_page page;
	int rc = read_page(b, &v, &page, err);

	if (rc != BIZLOCK_OK)
		return rc;
	if (page.count > 0)
		show(&page.rows[0], fn, arg);
	bl_page_free(&page);
	return BIZLOCK_OK;
}
