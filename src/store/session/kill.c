#include "store/session/kill.h"

#include <inttypes.h>

void bl_kill_add(struct bl_buf *ret, const char *what, const char *lock, uint64_t by)
{
	bl_buf_addf(ret, "%s IF(IS_USED_LOCK('%s') = %" PRIu64 ", %" PRIu64 ", 0)", what, lock, by,
	            by);
}

static int run(struct bl_session *s, struct bl_err *err)
{
	struct bl_err mine;
	int rc;

	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_run(s, s->text.data, s->text.len, NULL, &mine);
	if (rc != BIZLOCK_CONN)
		return BIZLOCK_OK;
	*err = mine;
	return rc;
}

/* The KILL asks for the number as well as for the name: another connection of ours may have the
 * name by now, while it waits here for the lost one to end. */
int bl_kill_marked(struct bl_session *s, const struct bl_mark *mark, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_kill_add(&s->text, "KILL", mark->name, mark->id);
	bl_buf_addf(&s->text, ";SELECT GET_LOCK('%s', 1), RELEASE_LOCK('%s')", mark->name,
	            mark->name);
	return run(s, err);
}

int bl_kill_keeper(struct bl_session *s, const char *bell, uint64_t by, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_kill_add(&s->text, "KILL", bell, by);
	return run(s, err);
}

int bl_kill_statement(struct bl_session *s, const struct bl_mark *mark, struct bl_err *err)
{
	if (!mark->name[0])
		return BIZLOCK_OK;
	bl_buf_reset(&s->text);
	bl_kill_add(&s->text, "KILL QUERY", mark->name, mark->id);
	return run(s, err);
}
