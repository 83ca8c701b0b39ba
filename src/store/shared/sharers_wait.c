/* How the first in line for a lock waits for others to leave, and is woken. While it sleeps it has
 * a named lock. An owner that leaves finds it by that name, as it finds watchers
 * (bell/sleepers.h). */
#include <inttypes.h>
#include <stdlib.h>

#include "store/bell/sleepers.h"
#include "store/session/errclass.h"
#include "store/shared/in_way.h"

/* A statement that was killed may have left us the name. */
static int take_name(struct bl_session *s, const char *bell, bool *ret, struct bl_err *err)
{
	int64_t got = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_sleepers_add_name(&s->text, "SELECT IF(IS_USED_LOCK", BL_FIRST_NAME, bell, "");
	bl_sleepers_add_name(&s->text, "=CONNECTION_ID(),1,GET_LOCK", BL_FIRST_NAME, bell, ",0");
	bl_buf_adds(&s->text, ")");
	rc = bl_session_ask_text(s, NULL, &got, err);
	*ret = got == 1;
	return rc;
}

/* If the name stayed, others would kill statements of ours that do not sleep. If BL_SLEEP_LOCK
 * stayed, batches would look for sleepers where there are none. */
static void free_names(struct bl_session *s, const char *bell)
{
	struct bl_err ignored;

	bl_buf_reset(&s->text);
	bl_sleepers_add_name(&s->text, "DO RELEASE_LOCK", BL_FIRST_NAME, bell, "");
	if (s->sql->mariadb)
		bl_buf_adds(&s->text, ",RELEASE_LOCK('" BL_SLEEP_LOCK "')");
	if (bl_session_run_text(s, NULL, &ignored) != BIZLOCK_OK)
		bl_session_leave(s);
}

void bl_shared_add_in_way(struct bl_session *s, const struct bl_wish *wish)
{
	if (wish->exclusive) {
		bl_shared_add_exists(s, wish, SHARING " AND timeout > " NOW);
		return;
	}
	bl_shared_add_exists(s, wish, "slot = 0 AND timeout > " NOW);
	if (!wish->limit)
		return;
	bl_buf_adds(&s->text, " OR ");
	bl_shared_add_count(s, wish);
	bl_buf_addf(&s->text, " >= %" PRIu32, wish->limit);
}

/* Condition and sleep are one statement, so nobody leaves unnoticed between them. It answers 1 if
 * it was woken, 0 if not, 2 if it did not sleep. A wait for a named lock gives NULL when it is
 * woken. */
static void add_sleep(struct bl_session *s, const struct bl_wish *wish, int64_t ms)
{
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT IF(");
	bl_shared_add_in_way(s, wish);
	bl_buf_adds(&s->text, ",IFNULL(");
	bl_sql_sleep(s->sql, &s->text, ms, false);
	bl_buf_adds(&s->text, ",1),2)");
}

int bl_shared_sleep(struct bl_session *s, const struct bl_wish *wish, int64_t ms, int wake_fd,
                    enum bl_heard *ret, struct bl_err *err)
{
	bool named = false;
	int rc = take_name(s, wish->bell, &named, err);

	*ret = BL_HEARD_NONE;
	if (rc != BIZLOCK_OK) { /* it may have been killed after it got the name */
		if (!s->gone)
			free_names(s, wish->bell);
		return rc;
	}
	if (!named && ms > BL_SHARED_POLL_MS)
		ms = BL_SHARED_POLL_MS;
	add_sleep(s, wish, ms);
	rc = bl_bell_sleep(s, ms, wake_fd, ret, err);
	if (!s->gone && (named || s->sql->mariadb))
		free_names(s, wish->bell);
	return rc;
}
