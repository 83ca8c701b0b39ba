/* The public door to the counters of a client, and to its trace. */
#include "api/args.h"
#include "api/door.h"
#include "client/client.h"
#include "core/prometheus.h"

#define TEXT_MAX 65536 /* bytes; no text comes near it */

int bizlock_stats(bizlock *b, bizlock_numbers *ret)
{
	bizlock_numbers now;
	struct bl_err *err = bl_door_error();
	int rc = bl_door_in(b, "stats", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_args_numbers(ret, err);
	if (rc == BIZLOCK_OK) {
		bl_client_numbers(b, &now);
		bl_args_give(ret, &now, sizeof(now));
	}
	return bl_door_out(b, "stats", err, rc);
}

static int write_text(bizlock *b, char *ret, size_t size, size_t *ret_len, struct bl_err *err)
{
	struct bl_buf text = BL_BUF_INIT(TEXT_MAX);
	bizlock_numbers now;
	int rc;

	if (!ret)
		return bl_args_given(false, "ret", err);
	bl_client_numbers(b, &now);
	bl_prometheus_write(&now, &text);
	rc = bl_args_text(&text, ret, size, ret_len, err);
	bl_buf_free(&text);
	return rc;
}

int bizlock_stats_prometheus(bizlock *b, char *ret, size_t size, size_t *ret_len)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_in(b, "stats_prometheus", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "stats_prometheus", err, write_text(b, ret, size, ret_len, err));
}

int bizlock_on_trace(bizlock *b, void (*fn)(void *arg, const bizlock_trace *), void *arg)
{
	struct bl_err *err = bl_door_error();
	int rc = bl_door_visit(b, "on_trace", err, BIZLOCK_OK);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_door_out(b, "on_trace", err, bl_trace_tell_to(&b->trace, fn, arg, err));
}
