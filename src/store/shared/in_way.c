/* Looking at the rows of a shared lock, and clearing rows whose leases are over. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "store/session/errclass.h"
#include "store/shared/in_way.h"

void bl_shared_add_owner(struct bl_session *s, const struct bl_wish *wish)
{
	bl_sql_literal(&s->text, "_ascii", wish->owner, strlen(wish->owner));
}

void bl_shared_add_exists(struct bl_session *s, const struct bl_wish *wish, const char *rows)
{
	bl_buf_addf(&s->text, "EXISTS(SELECT 1 FROM %s", s->sql->table);
	bl_sql_key(&s->text, wish->key);
	bl_buf_addf(&s->text, " AND %s)", rows);
}

void bl_shared_add_count(struct bl_session *s, const struct bl_wish *wish)
{
	bl_buf_addf(&s->text, "(SELECT COUNT(*) FROM %s", s->sql->table);
	bl_sql_key(&s->text, wish->key);
	bl_buf_adds(&s->text, " AND " SHARING " AND timeout > " NOW ")");
}

/* There is one row, with the doorbell, even if the lock has no rows. */
void bl_shared_add_look(struct bl_session *s, const struct bl_wish *wish, const char *slot)
{
	if (wish->bell)
		bl_buf_addf(&s->text, "SELECT IS_USED_LOCK('%s')", wish->bell);
	else
		bl_buf_adds(&s->text, "SELECT 0");
	bl_buf_adds(&s->text, ", l.slot, " ROW_READ ", l.taken_from, @bizlock_before, l.owner = ");
	bl_shared_add_owner(s, wish);
	bl_buf_addf(&s->text, " FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM %s", s->sql->table);
	bl_sql_key(&s->text, wish->key);
	if (slot)
		bl_buf_addf(&s->text, " AND slot IN (0, %s)", slot);
	bl_buf_adds(&s->text, ") AS l ON TRUE ORDER BY l.slot");
}

/* ---- judging ----------------------------------------------------------------------------- */

struct judging {
	const struct bl_wish *wish;
	struct bl_shared_seen *seen;
	struct bl_shared_dead *dead;
	uint32_t sharing;               /* others that have a slot */
	struct bl_row soonest, longest; /* of these others, by their leases */
};

static void note_dead(struct judging *j, uint32_t slot, const struct bl_row *row)
{
	struct bl_shared_dead *dead = j->dead;
	bool alone = j->wish->exclusive, in_way = slot == 0 || alone || j->wish->limit;

	if (!in_way || !row->owner[0])
		return;
	if (!dead || dead->count == sizeof(dead->rows) / sizeof(dead->rows[0])) {
		j->seen->uncleared |= (slot == 0) != alone;
		return;
	}
	dead->rows[dead->count].slot = slot;
	dead->rows[dead->count].fence = row->fence;
	dead->rows[dead->count++].held = row->depth > 0 || row->took_over;
	dead->row = *row;
}

/* An own row of the other kind (a sharer's in slot 0, an exclusive contender's elsewhere) was left
 * by a statement whose reply was lost. It is in the way like anybody's, until it is swept or its
 * lease is over. If an exclusive contender took a sharer's row for its own, it would have the lock
 * in a slot where no sharer looks. */
static void note_row(struct judging *j, uint32_t slot, const struct bl_row *row, bool mine)
{
	struct bl_shared_seen *seen = j->seen;

	mine = mine && (slot == 0) == j->wish->exclusive;

	if (slot == 0)
		seen->header = row->fence;
	if (row->left_us <= 0) {
		note_dead(j, slot, row);
	} else if (mine) {
		seen->mine = true;
		seen->slot = slot;
		seen->fence = row->fence;
		seen->took_over = row->took_over;
	} else if (slot == 0) {
		seen->in_way = *row;
		seen->exclusively = true;
	} else {
		if (j->sharing == 0 || row->left_us < j->soonest.left_us)
			j->soonest = *row;
		if (j->sharing++ == 0 || row->left_us > j->longest.left_us)
			j->longest = *row;
	}
}

/* Whom to wait for: the exclusive owner; else the sharer whose lease ends last (an exclusive wish)
 * or first (a limit is reached). */
void bl_shared_judge(const struct bl_wish *wish, struct bl_rows *rows, struct bl_shared_seen *ret,
                     struct bl_shared_dead *dead)
{
	struct judging j = {.wish = wish, .seen = ret, .dead = dead};
	uint64_t bell_by = 0;
	MYSQL_ROW row;

	*ret = (struct bl_shared_seen){.mine = false};
	while ((row = bl_rows_next(rows)) != NULL) {
		uint32_t slot = bl_rows_u32(row[1]);
		struct bl_row one;

		bl_row_read(row + 2, &one);
		one.took_over = bl_rows_u64(row[7]) != 0;
		one.shares = slot > 0;
		bell_by = bl_rows_u64(row[0]);
		ret->before = bl_rows_u64(row[8]);
		if (row[1])
			note_row(&j, slot, &one, row[9] && row[9][0] == '1');
	}
	if (ret->in_way.left_us <= 0 && wish->exclusive && j.sharing > 0)
		ret->in_way = j.longest;
	else if (ret->in_way.left_us <= 0 && wish->limit && !ret->mine && j.sharing >= wish->limit)
		ret->in_way = j.soonest;
	ret->in_way.bell_by = bell_by;
}

/* ---- clearing ---------------------------------------------------------------------------- */

/* *ret: one bit for each dead row, in order; 1: no transaction has locked it. */
static int probe(struct bl_session *s, const struct bl_wish *wish,
                 const struct bl_shared_dead *dead, uint64_t *ret, struct bl_err *err)
{
	struct bl_key key = *wish->key;
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT slot FROM %s FORCE INDEX (PRIMARY)", s->sql->table);
	for (size_t i = 0; i < dead->count; i++) {
		key.slot = dead->rows[i].slot;
		bl_sql_add_key(&s->text, i == 0, &key);
	}
	bl_sql_end_keys(&s->text);
	bl_buf_adds(&s->text, " FOR UPDATE SKIP LOCKED");
	rc = bl_session_query_text(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret = 0;
	while ((row = bl_rows_next(rows)) != NULL)
		for (size_t i = 0; row[0] && i < dead->count; i++)
			if (bl_rows_u32(row[0]) == dead->rows[i].slot)
				*ret |= UINT64_C(1) << i;
	bl_rows_free(rows);
	return rc;
}

/* Nobody fences a hold whose lease is over, so a row that probe() found unlocked still is. But the
 * lease may be running again: a renewal that was sent in time, and had to wait until the lease was
 * over, counts from when it was sent. Then, or if the owner has just released the row, nothing is
 * cleared. */
static int clear_row(struct bl_session *s, struct bl_key key, uint64_t fence, bool held,
                     struct bl_shared_seen *seen, struct bl_err *err)
{
	uint64_t affected = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_sql_drop(s->sql, &s->text, &key, NULL, fence, bl_sql_rest_of_others(&key));
	bl_buf_adds(&s->text, " AND " OVER " AND owner <> ''");
	rc = bl_session_run_text(s, &affected, err);
	seen->took_over |= held && (affected > 0 || (rc == BIZLOCK_CONN && bl_may_have_run(err)));
	seen->uncleared |= affected == 0;
	return rc;
}

/* An exclusive contender takes slot 0 over as it is: the row remembers who left it. */
static bool is_cleared(const struct bl_wish *wish, uint32_t slot)
{
	return slot > 0 || !wish->exclusive;
}

static int clear_dead(struct bl_session *s, const struct bl_wish *wish, struct bl_shared_dead *dead,
                      enum bl_shared_how how, struct bl_shared_seen *seen, struct bl_err *err)
{
	struct bl_key key = *wish->key;
	uint64_t unlocked = 0;
	int rc = probe(s, wish, dead, &unlocked, err);

	for (size_t i = 0; rc == BIZLOCK_OK && i < dead->count; i++) {
		bool free = unlocked & UINT64_C(1) << i;

		key.slot = dead->rows[i].slot;
		if (free && is_cleared(wish, key.slot) && how == BL_SHARED_CLEAR) {
			rc = clear_row(s, key, dead->rows[i].fence, dead->rows[i].held, seen, err);
		} else if (free) {
			seen->uncleared |= is_cleared(wish, key.slot);
		} else if (seen->in_way.left_us <= 0) {
			uint64_t bell_by = seen->in_way.bell_by;

			seen->in_way = dead->row;
			seen->in_way.bell_by = bell_by;
			seen->in_way.locked = true;
		}
	}
	return rc;
}

int bl_shared_look(struct bl_session *s, const struct bl_wish *wish, enum bl_shared_how how,
                   struct bl_shared_seen *ret, struct bl_err *err)
{
	bool probes = how == BL_SHARED_CLEAR || (how == BL_SHARED_PROBE && wish->exclusive);
	struct bl_shared_dead dead = {.count = 0};
	struct bl_rows *rows;
	int rc = bl_lock_catch_up(s, NULL, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_reset(&s->text);
	bl_shared_add_look(s, wish, NULL);
	rc = bl_session_query_text(s, BL_SHARED_COLUMNS, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_shared_judge(wish, rows, ret, probes ? &dead : NULL);
	ret->before = 0; /* @bizlock_before is of an earlier text */
	bl_rows_free(rows);
	return dead.count ? clear_dead(s, wish, &dead, how, ret, err) : rc;
}
