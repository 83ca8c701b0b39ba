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

/* Of a row that was taken. Where triggers keep the mark of a rest from us, one that rested counts
 * as taken over. */
static void read_answer(const struct bl_done *done, struct bl_goal *goal)
{
	bool there = bl_was_there(done->affected);
	uint64_t rested = there ? done->insert_id & BL_SQL_RESTED : 0;

	goal->fence = done->insert_id - rested;
	goal->took_over = there && !rested;
}

/* Without a doorbell there most often is a row, whose lease is over. *ret_held, with an error: that
 * is what it says. */
static int take_one(struct bl_session *s, struct bl_ring ring, struct bl_done *ret, bool *ret_held,
                    struct bl_err *err)
{
	enum bl_stmt free_one = ring.rung ? BL_STMT_TAKE_RUNG : BL_STMT_TAKE_RING;
	int rc;

	if (ring.bells) {
		rc = bl_session_exec(s, free_one, ret, err);
		*ret_held = rc == BIZLOCK_DB && bl_told_held(err);
		if (rc != BIZLOCK_DB || !bl_told_over(err))
			return rc;
	}
	rc = bl_session_exec(s, BL_STMT_TAKE, ret, err);
	*ret_held = rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL;
	return rc;
}

int bl_take(struct bl_session *s, const struct bl_claim *claim, struct bl_goal **goals, size_t n,
            struct bl_ring ring, enum bl_took *ret, struct bl_err *err)
{
	bool rings = ring.bells && !ring.rung, held = false;
	struct bl_goal *goal = goals[0];
	struct bl_err ignored;
	struct bl_done done;
	int rc;

	if (n > 1)
		return bl_set_take(s, claim, goals, n, ring, ret, err);
	*ret = BL_TOOK_NOTHING;
	bind_claim(&s->params, goal->key, claim, ring.bells ? goal->bell : NULL);
	rc = take_one(s, ring, &done, &held, err);
	if (rc == BIZLOCK_OK) {
		read_answer(&done, goal);
		*ret = BL_TOOK_ALL;
	} else if (held) {
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
