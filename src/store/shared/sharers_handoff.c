/* Handing a slot of a shared lock from its owner to the next one. */
#include <inttypes.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/shared/in_way.h"

static void add_slot_0(struct bl_session *s, const struct bl_wish *wish)
{
	bl_shared_add_exists(s, wish, "slot = 0 AND " TAKEN);
}

/* No slot is handed over while a contender waits in slot 0, or too many share the lock: a row that
 * is handed on and on never goes, and would keep waiters out.
 *
 * A contender that comes for slot 0 between the two reads may have drawn its fence before the row
 * got its own. If the row were given and released before the contender looks, the contender would
 * find nobody, and have the lock with the smaller fence. So slot 0 is read after the INSERT, too. A
 * contender that is not in slot 0 by then draws a larger fence. */
static void add_hand_over(struct bl_session *s, struct bl_ref hold, const struct bl_shared_go *go)
{
	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT IF(");
	add_slot_0(s, &go->wish);
	bl_buf_adds(&s->text, " OR ");
	bl_shared_add_count(s, &go->wish);
	bl_buf_addf(&s->text, " > %" PRIu32 ",NULL,%" PRIu32 ") INTO @bizlock_slot;",
	            go->wish.limit, hold.key->slot);
	bl_shared_add_values(s, go);
	bl_buf_adds(&s->text, "reentrant = IF(owner = ");
	bl_sql_literal(&s->text, "_ascii", hold.owner, strlen(hold.owner));
	bl_buf_addf(&s->text, " AND fence = %" PRIu64 HANDED_OVER ";SELECT ", hold.fence);
	add_slot_0(s, &go->wish);
}

struct answer {
	MYSQL *mysql;
	struct bl_handed *ret;
};

static void read_hand_over(void *arg, unsigned statement, struct bl_rows *rows)
{
	const struct answer *a = arg;

	if (statement == 1 && !rows) {
		*a->ret =
		        (struct bl_handed){.taken = true,
		                           .from_hold = bl_was_there(mysql_affected_rows(a->mysql)),
		                           .met = true,
		                           .fence = mysql_insert_id(a->mysql)};
	} else if (statement == 2 && rows && rows->columns == 1) {
		MYSQL_ROW row = bl_rows_next(rows);

		a->ret->met = !row || !row[0] || strcmp(row[0], "0") != 0;
	}
}

int bl_shared_hand_over(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                        uint32_t limit, struct bl_handed *ret, struct bl_err *err)
{
	struct bl_shared_go go = {.wish = {.key = hold.key, .owner = claim->owner, .limit = limit},
	                          .claim = claim};
	struct answer answer = {s->mysql, ret};
	int rc;

	*ret = (struct bl_handed){.taken = false};
	add_hand_over(s, hold, &go);
	rc = bl_session_each(s, 3, read_hand_over, &answer, err);
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL && !s->gone)
		return BIZLOCK_OK;
	return rc;
}
