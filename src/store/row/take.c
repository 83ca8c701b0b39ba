#include "store/row/take.h"

#include <string.h>

#include "store/row/many.h"
#include "store/session/errclass.h"

/* A session that cannot do it is given up: its end frees the bells, which nobody would know of any
 * more. */
void bl_take_free_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n)
{
	struct bl_err ignored;

	bl_buf_reset(&s->text);
	for (size_t i = 0; i < n; i++)
		bl_buf_addf(&s->text, "%s RELEASE_LOCK('%s')", i == 0 ? "DO" : ",", goals[i]->bell);
	if (bl_session_run_text(s, NULL, &ignored) != BIZLOCK_OK)
		bl_session_leave(s);
}

/* ---- one ------------------------------------------------------------------------------------ */

static void bind_claim(struct bl_params *p, const struct bl_key *key, const struct bl_claim *claim,
                       const char *bell)
{
	bl_params_key(p, key);
	bl_params_owner(p, claim->owner);
	bl_params_note(p, claim->note);
	bl_params_bell(p, bell ? bell : "");
	p->lease_us = (int64_t)claim->lease_ms * 1000;
}

bool bl_was_there(uint64_t affected)
{
	return affected > 1;
}

int bl_take_from(struct bl_session *s, struct bl_ref hold, const struct bl_claim *claim,
                 const char *bell, struct bl_handed *ret, struct bl_err *err)
{
	struct bl_done done;
	int rc;

	bind_claim(&s->params, hold.key, claim, bell);
	bl_params_giver(&s->params, hold.owner);
	s->params.fence = hold.fence;
	rc = bl_session_exec(s, BL_STMT_HAND_OVER, &done, err);
	*ret = (struct bl_handed){.taken = rc == BIZLOCK_OK};
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL)
		return BIZLOCK_OK;
	if (rc == BIZLOCK_OK) {
		ret->from_hold = bl_was_there(done.affected);
		ret->fence = done.insert_id;
	}
	return rc;
}

/* ---- several -------------------------------------------------------------------------------- */

static bool same(const char *text, unsigned long len, const char *part, size_t part_len)
{
	return text && len == part_len && memcmp(text, part, len) == 0;
}

struct taking {
	MYSQL *mysql;
	struct bl_goal **goals;
	size_t n;
	unsigned statements; /* the last one reads the rows, that before it makes them */
	unsigned answered;
	bool there; /* one of the rows was there before */
};

enum { COLUMNS = 5 };

/* One row: biz_id, biz_type, fence, taken_from, and whether anybody shares the lock. */
static void note_taken(const struct taking *t, MYSQL_ROW row, const unsigned long *len)
{
	for (size_t i = 0; i < t->n; i++) {
		struct bl_goal *goal = t->goals[i];

		if (goal->seen || !same(row[0], len[0], goal->key->id, goal->key->id_len) ||
		    !same(row[1], len[1], goal->key->type, goal->key->type_len))
			continue;
		goal->seen = true;
		goal->fence = bl_rows_u64(row[2]);
		goal->took_over = goal->cleared || (row[3] && strcmp(row[3], "0") != 0);
		goal->shared = !row[4] || strcmp(row[4], "0") != 0;
		return;
	}
}

static void read_taken(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct taking *t = arg;
	MYSQL_ROW row;

	t->answered = statement + 1;
	if (t->answered + 1 == t->statements && !rows)
		t->there = mysql_affected_rows(t->mysql) > t->n; /* see bl_was_there() */
	if (t->answered == t->statements && rows && rows->columns == COLUMNS)
		while ((row = bl_rows_next(rows)) != NULL)
			note_taken(t, row, rows->lengths);
}

/* Takes the doorbells one after the other, up to the first that somebody has. This comes before any
 * fence is drawn, so that no contender at a doorbell comes in between. */
static void add_bells(struct bl_session *s, struct bl_goal *const *goals, size_t n, const char *had)
{
	bl_buf_adds(&s->text, "SET @bizlock_bell = 1");
	for (size_t i = 0; i < n; i++)
		if (goals[i]->bell != had)
			bl_buf_addf(&s->text, " AND GET_LOCK('%s',0) = 1", goals[i]->bell);
	bl_buf_adds(&s->text, ";");
}

static void add_set_insert(struct bl_session *s, struct bl_goal *const *goals, size_t n,
                           const struct bl_claim *claim, bool bells)
{
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++) {
		struct bl_sql_row row = {.key = goals[i]->key,
		                         .owner = claim->owner,
		                         .note = claim->note,
		                         .lease_us = (int64_t)claim->lease_ms * 1000,
		                         .if_bell = bells && i == 0,
		                         .bell = bells};

		bl_sql_add_to_set(&s->text, i == 0, &row);
	}
	bl_sql_end_set(&s->text);
}

/* Adds the statement that reads the rows, and sends the text. *ret_done false: the text was
 * refused. */
static int send_taking(struct bl_session *s, struct taking *t, const char *owner, bool looks,
                       bool *ret_done, struct bl_err *err)
{
	int rc;

	bl_sql_read_set(s->sql, &s->text, looks);
	for (size_t i = 0; i < t->n; i++) {
		t->goals[i]->seen = false;
		bl_sql_add_key(&s->text, i == 0, t->goals[i]->key);
	}
	bl_sql_end_keys(&s->text);
	bl_many_suffix(&s->text, owner);
	rc = bl_session_each(s, t->statements, read_taken, t, err);
	*ret_done = rc == BIZLOCK_OK;
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

static int take_several(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                        size_t n, struct bl_with_bells bells, enum bl_took *ret, bool *ret_over,
                        struct bl_err *err)
{
	struct taking t = {s->mysql, goals, n, bells.take ? 3 : 2, 0, false};
	bool all;
	int rc;

	bl_buf_reset(&s->text);
	if (bells.take)
		add_bells(s, goals, n, bells.had);
	add_set_insert(s, goals, n, claim, bells.take);
	rc = send_taking(s, &t, claim->owner, false, &all, err);
	*ret_over = t.there;
	if (!all && !s->gone && bells.take)
		bl_take_free_bells(s, goals, n); /* those taken before the refusal */
	if (all)
		*ret = BL_TOOK_ALL;
	else
		*ret = t.answered + 1 < t.statements ? BL_TOOK_NOTHING : BL_TOOK_MAYBE;
	return rc;
}

/* In a cluster the fences are drawn first. The member asks for sharers once it has caught up with
 * the others. */
static int draw_apart(struct bl_session *s, struct taking *t, struct bl_err *err)
{
	int rc = bl_session_run_text(s, NULL, err);

	if (rc == BIZLOCK_OK)
		rc = bl_lock_catch_up(s, NULL, err);
	bl_buf_reset(&s->text);
	t->statements--;
	return rc;
}

static int draw_several(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                        size_t n, struct bl_err *err)
{
	struct taking t = {s->mysql, goals, n, 2, 0, false};
	int rc = BIZLOCK_OK;
	bool done;

	for (size_t i = 0; i < n; i++)
		goals[i]->seen = false;
	bl_buf_reset(&s->text);
	bl_sql_begin_set(s->sql, &s->text);
	for (size_t i = 0; i < n; i++)
		bl_sql_add_free_row(&s->text, i == 0, goals[i]->key);
	bl_sql_begin_again(&s->text);
	bl_buf_adds(&s->text, "owner = ");
	bl_sql_literal(&s->text, "_ascii", claim->owner, strlen(claim->owner));
	bl_sql_end_again(&s->text);
	if (bl_sql_in_cluster(s->sql))
		rc = draw_apart(s, &t, err);
	if (rc == BIZLOCK_OK)
		return send_taking(s, &t, claim->owner, true, &done, err);
	return rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL ? BIZLOCK_OK : rc;
}

/* ---- either --------------------------------------------------------------------------------- */

int bl_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals, size_t n,
            struct bl_with_bells bells, enum bl_took *ret, bool *ret_over, struct bl_err *err)
{
	bool takes_bell = bells.take && !bells.had;
	struct bl_goal *goal = goals[0];
	struct bl_done done;
	int rc;

	*ret = BL_TOOK_NOTHING;
	*ret_over = false;
	if (n > 1)
		return take_several(s, claim, goals, n, bells, ret, ret_over, err);
	bind_claim(&s->params, goal->key, claim, bells.take ? goal->bell : NULL);
	rc = bl_session_exec(s, takes_bell ? BL_STMT_TAKE_BELL : BL_STMT_TAKE, &done, err);
	*ret_over = rc == BIZLOCK_DB && bl_told_over(err);
	if (rc == BIZLOCK_OK) {
		goal->fence = done.insert_id;
		goal->took_over = false;
		*ret = BL_TOOK_ALL;
	} else if (*ret_over || (rc == BIZLOCK_DB && bl_told_held(err))) {
		*ret = takes_bell ? BL_TOOK_BELL : BL_TOOK_NOTHING;
		rc = BIZLOCK_OK;
	} else if (takes_bell && bl_classify(err->native) == BL_CLASS_NULL) {
		rc = BIZLOCK_OK; /* the doorbell is taken */
	} else if (takes_bell && !s->gone) {
		/* The bell may have been taken before the row was refused. Kept, it would stop
		 * everybody else for nothing. */
		bl_take_free_bells(s, goals, 1);
	}
	return rc;
}

int bl_take_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                  size_t n, const char *bell, bool *ret, struct bl_err *err)
{
	struct bl_goal *goal = goals[0];
	struct bl_ref ref = {.key = goal->key, .owner = claim->owner, .fence = goal->fence};
	struct bl_handed handed;
	int rc;

	*ret = true;
	if (n > 1)
		return draw_several(s, claim, goals, n, err);
	rc = bl_take_from(s, ref, claim, bell, &handed, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret = handed.from_hold;
	goal->fence = handed.fence;
	return rc;
}

int bl_take_rival(struct bl_session *s, struct bl_goal *const *goals, size_t n, bool *ret,
                  struct bl_err *err)
{
	int64_t rivals = 0;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT 0");
	for (size_t i = 0; i < n; i++)
		bl_buf_addf(&s->text, " + IFNULL(IS_USED_LOCK('%s') <> CONNECTION_ID(),0)",
		            goals[i]->bell);
	rc = bl_session_ask_text(s, NULL, &rivals, err);
	if (rc == BIZLOCK_OK)
		*ret = rivals != 0;
	return rc;
}
