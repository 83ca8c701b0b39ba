#include "store/take.h"

#include <string.h>

#include "store/bell.h"
#include "store/errclass.h"
#include "store/set.h"

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

int bl_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals, size_t n,
            struct bl_ring ring, enum bl_took *ret, bool *ret_over, struct bl_err *err)
{
	bool rings = ring.bells && !ring.rung;
	struct bl_goal *goal = goals[0];
	struct bl_err ignored;
	struct bl_done done;
	int rc;

	*ret = BL_TOOK_NOTHING;
	*ret_over = false;
	if (n > 1)
		return bl_set_take(s, claim, goals, n, ring, ret, ret_over, err);
	bind_claim(&s->params, goal->key, claim, ring.bells ? goal->bell : NULL);
	rc = bl_session_exec(s, rings ? BL_STMT_TAKE_RING : BL_STMT_TAKE, &done, err);
	*ret_over = rc == BIZLOCK_DB && bl_told_over(err);
	if (rc == BIZLOCK_OK) {
		goal->fence = done.insert_id;
		goal->took_over = false;
		*ret = BL_TOOK_ALL;
	} else if (*ret_over || (rc == BIZLOCK_DB && bl_told_held(err))) {
		*ret = rings ? BL_TOOK_BELL : BL_TOOK_NOTHING;
		rc = BIZLOCK_OK;
	} else if (rings && bl_classify(err->native) == BL_CLASS_NULL) {
		rc = BIZLOCK_OK; /* the doorbell is taken */
	} else if (rings && !s->gone) {
		/* The bell may have been rung before the row was refused. Kept, it would stop
		 * everybody else for nothing. */
		bl_bell_free(s, goal->bell, &ignored);
	}
	return rc;
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

int bl_take_again(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals,
                  size_t n, const char *bell, bool *ret, struct bl_err *err)
{
	struct bl_goal *goal = goals[0];
	struct bl_ref ref = {.key = goal->key, .owner = claim->owner, .fence = goal->fence};
	struct bl_handed handed;
	int rc;

	*ret = true;
	if (n > 1)
		return bl_set_draw_again(s, claim, goals, n, err);
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
