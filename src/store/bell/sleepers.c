#include "store/bell/sleepers.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A doorbell's name is "bizlock:" and a hash. A sleeper's name differs from it in the first 7 bytes
 * only. */
#define PREFIX_LEN 7

void bl_sleepers_add_name(struct bl_buf *text, const char *before, unsigned slot, const char *bell,
                          const char *after)
{
	const char digit = (char)('0' + slot);

	bl_buf_adds(text, before);
	bl_buf_adds(text, "('bizwat");
	bl_buf_add(text, &digit, 1);
	bl_buf_adds(text, bell + PREFIX_LEN);
	bl_buf_adds(text, "'");
	bl_buf_adds(text, after);
	bl_buf_adds(text, ")");
}

unsigned bl_sleepers_slots(enum bl_sleepers whom, unsigned *ret_end)
{
	*ret_end = whom == BL_SLEEPERS_WATCHING ? BL_WATCHER_NAMES : BL_SLEEPER_NAMES;
	return whom == BL_SLEEPERS_FIRST ? BL_FIRST_NAME : 0;
}

/* IS_USED_LOCK()/0 gives a warning if somebody has the lock (settings.c asks for such warnings),
 * and none if it is NULL/0. The answer to DO counts warnings, and has no rows: a SELECT costs four
 * times as much. */
static void add_questions(struct bl_buf *text, const char *before, const char *bell,
                          enum bl_sleepers whom)
{
	unsigned end, slot = bl_sleepers_slots(whom, &end);

	for (; slot < end; slot++) {
		bl_sleepers_add_name(text, before, slot, bell, "");
		bl_buf_adds(text, "/0");
		before = ",IS_USED_LOCK";
	}
}

/* For several keys on MariaDB, one question asks whether anybody sleeps at all. It costs an eighth
 * of the questions for each key, which follow only after a yes. A sleeper has BL_SLEEP_LOCK, or
 * waits for it, so somebody has it. A sleeper that gets BL_SLEEP_LOCK after the question wakes up,
 * and looks at its rows before it sleeps again; the released rows are gone by then. */
void bl_sleepers_add_rings(struct bl_session *s, const char *const *bells, size_t n)
{
	bool one_question = s->sql->mariadb && n > 1;
	struct bl_buf *text = &s->text;

	for (size_t i = 0; i < n; i++) {
		bl_buf_adds(text, i == 0 ? "DO " : ",");
		bl_buf_adds(text, "RELEASE_LOCK('");
		bl_buf_adds(text, bells[i]);
		bl_buf_adds(text, "')");
		if (!one_question)
			add_questions(text, ",IS_USED_LOCK", bells[i], BL_SLEEPERS_WATCHING);
	}
	if (one_question)
		bl_buf_adds(text, ",IS_USED_LOCK('" BL_SLEEP_LOCK "')/0");
}

void bl_sleepers_add_question(struct bl_buf *text, const char *const *bells, size_t n,
                              enum bl_sleepers whom)
{
	for (size_t i = 0; i < n; i++)
		add_questions(text, i == 0 ? "DO IS_USED_LOCK" : ",IS_USED_LOCK", bells[i], whom);
}

/* At most this many sleepers are woken. The rest find out by their own next look. */
#define WOKEN_MAX 16

/* A connection that sleeps, and the name by which it was found. */
struct sleeper {
	uint64_t connection;
	const char *bell;
	unsigned slot;
};

/* The answer has a connection's number for each name, 0 where nobody has the name. */
static unsigned read_sleepers(struct bl_rows *rows, const char *const *bells, size_t n,
                              enum bl_sleepers whom, struct sleeper ret[WOKEN_MAX])
{
	unsigned end, begin = bl_sleepers_slots(whom, &end), names = end - begin;
	MYSQL_ROW row = bl_rows_next(rows);
	char *at = row ? row[0] : NULL;
	unsigned found = 0;

	for (size_t i = 0; at && *at && i < n * names && found < WOKEN_MAX; i++) {
		char *next;
		uint64_t id = strtoull(at, &next, 10);
		bool known = id == 0;

		for (unsigned j = 0; j < found; j++)
			known |= ret[j].connection == id;
		if (!known)
			ret[found++] = (struct sleeper){id, bells[i / names],
			                                begin + (unsigned)(i % names)};
		at = *next == ',' ? next + 1 : NULL;
	}
	return found;
}

static unsigned find_sleepers(struct bl_session *s, const char *const *bells, size_t n,
                              enum bl_sleepers whom, struct sleeper ret[WOKEN_MAX])
{
	unsigned end, begin = bl_sleepers_slots(whom, &end), found;
	struct bl_err ignored;
	struct bl_rows *rows;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT CONCAT_WS(','");
	for (size_t i = 0; i < n; i++)
		for (unsigned slot = begin; slot < end; slot++) {
			bl_sleepers_add_name(&s->text, ",IFNULL(IS_USED_LOCK", slot, bells[i], "");
			bl_buf_adds(&s->text, ",0)");
		}
	bl_buf_adds(&s->text, ")");
	if (bl_session_query_text(s, 1, &rows, &ignored) != BIZLOCK_OK)
		return 0;
	found = read_sleepers(rows, bells, n, whom, ret);
	bl_rows_free(rows);
	return found;
}

/* The KILL checks once more that the connection has the name. A first in line that has given the
 * name back is awake, and may be at work. When KILL QUERY comes between two statements of a packet,
 * MariaDB and MySQL drop the rest of the packet without an answer, and the client waits until its
 * timeout. */
static void end_sleep_of(struct bl_session *s, const struct sleeper *sleeper)
{
	struct bl_err ignored;

	bl_buf_reset(&s->text);
	bl_sleepers_add_name(&s->text, "KILL QUERY IF(IS_USED_LOCK", sleeper->slot, sleeper->bell,
	                     "");
	bl_buf_addf(&s->text, "=%" PRIu64 ",%" PRIu64 ",0)", sleeper->connection,
	            sleeper->connection);
	bl_session_run_text(s, NULL, &ignored);
}

void bl_sleepers_wake(struct bl_session *s, const char *const *bells, size_t n,
                      enum bl_sleepers whom)
{
	struct sleeper sleepers[WOKEN_MAX];
	unsigned found = 0;

	if (!s->gone && s->warnings > 0)
		found = find_sleepers(s, bells, n, whom, sleepers);
	s->woke = found > 0;
	for (unsigned i = 0; i < found && !s->gone; i++)
		end_sleep_of(s, &sleepers[i]);
}

int bl_sleepers_ring(struct bl_session *s, const char *const *bells, size_t n, struct bl_err *err)
{
	int rc;

	bl_buf_reset(&s->text);
	bl_sleepers_add_rings(s, bells, n);
	rc = bl_session_run_text(s, NULL, err);
	if (rc != BIZLOCK_OK) { /* only the end of the connection is sure to give the doorbells
		                   back */
		bl_session_leave(s);
		return rc;
	}
	s->warnings = mysql_warning_count(s->mysql);
	bl_sleepers_wake(s, bells, n, BL_SLEEPERS_WATCHING);
	s->woke = false;
	return rc;
}
