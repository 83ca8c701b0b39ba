/* The rules of a first acquisition. Every turn looks at row and doorbell and then
 * acts on what it saw:
 *
 *   row held, holder has the doorbell   wait at the doorbell, for its lease at most
 *   row held, holder without doorbell   the same, but look up often: no release
 *                                       will ring; with the doorbell ours: poll
 *   row free (or lease over)            go for both; if the doorbell is taken,
 *                                       somebody else is about to go: wait, but
 *                                       not for ever
 *   lease over, but the row is locked   its holder's transaction has fenced it:
 *                                       poll until that ends
 *
 * Nothing here waits for a row lock that another bizlock statement holds: that
 * is what deadlocks are made of. */
#include "client/contest.h"

#include <stdio.h>

#include "client/acquire.h"
#include "client/contender.h"
#include "client/pass.h"
#include "client/retry.h"
#include "store/errclass.h"

/* A try gives a broken connection another chance: an idle one may have been
 * closed by a server that is back by now. */
#define TRY_FAILURES 3

struct contest {
	struct bl_contender me;
	struct bl_line *line; /* NULL: a try, which does not stand in line */
	unsigned failures;
	bl_time end;       /* of our patience: the deadline; a try's is a grace that begins
	                      with its first look, for connecting may take longer */
	uint64_t stuck_by; /* connection whose doorbell stands still; 0: none */
	bl_time stuck_until;
};

static bool once(const struct contest *c)
{
	return c->me.request->once;
}

/* BUSY or TIMEOUT, naming the holder. */
static int refuse(struct contest *c)
{
	char holder[320];

	bl_describe(&c->me.row, holder, sizeof(holder));
	return bl_err_set(c->me.call->err, once(c) ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT, "%s", holder);
}

/* For the messages of those who wait behind us. */
static void tell_line(struct contest *c)
{
	if (!c->line)
		return;
	pthread_mutex_lock(&c->me.client->mu);
	bl_describe(&c->me.row, c->line->holder, sizeof(c->line->holder));
	pthread_mutex_unlock(&c->me.client->mu);
}

static int while_held(struct contest *c)
{
	const struct bl_row *row = &c->me.row;
	bl_time until;

	c->stuck_by = 0;
	tell_line(c);
	if (once(c) || bl_passed(c->end))
		return refuse(c);
	/* No longer than the lease: its end rings no bell. */
	until = bl_earlier(c->end, bl_now() + row->left_us * 1000);
	if (!c->me.bells || c->me.hold->bell) {
		bl_contender_pause(&c->me, until);
		return BL_AGAIN;
	}
	if (row->bell == 0 || row->bell != row->bell_by)
		until = bl_earlier(until, bl_now() + BL_GRACE_NS);
	return bl_contender_wait(&c->me, until);
}

/* The row is free, the doorbell is not: most often its owner is between the two. */
static int while_blocked(struct contest *c)
{
	uint64_t by = c->me.row.bell_by;

	if (by && c->stuck_by == by && bl_passed(c->stuck_until))
		return bl_contender_attempt(&c->me, false);
	if (!by || c->stuck_by != by) {
		bool first = c->stuck_by == 0;

		c->stuck_by = by;
		c->stuck_until = bl_now() + BL_GRACE_NS +
		                 (bl_time)(bl_client_random(c->me.client) % BL_GRACE_JITTER_NS);
		if (first && once(c) && c->end < c->stuck_until)
			c->end = c->stuck_until;
	}
	if (bl_passed(c->end))
		return refuse(c);
	if (by && !once(c))
		return bl_contender_wait(&c->me, bl_earlier(c->stuck_until, c->end));
	bl_contender_pause(&c->me, bl_earlier(c->stuck_until, c->end));
	return BL_AGAIN;
}

/* The lease is over, but its holder's transaction goes on. To take it would be to wait
 * for that, beyond our deadline. Or it is a statement of bizlock's own, such as a late
 * renewal, that has the row for a moment; so a try looks again, for another moment. */
static int while_fenced(struct contest *c)
{
	if (once(c))
		c->end = bl_earlier(c->end, bl_now() + BL_MOMENT_NS);
	if (bl_passed(c->end))
		return refuse(c);
	bl_contender_pause(&c->me, c->end);
	return BL_AGAIN;
}

static int while_free(struct contest *c)
{
	bool ring = c->me.bells && !c->me.hold->bell;
	int rc = c->me.row.found ? bl_contender_probe(&c->me) : BIZLOCK_OK;

	if (rc != BIZLOCK_OK)
		return rc;
	if (c->me.row.locked)
		return while_fenced(c);
	rc = bl_contender_attempt(&c->me, ring);

	if (rc != BL_AGAIN)
		return rc;
	if (ring && !c->me.hold->bell)
		return while_blocked(c);
	return bl_passed(c->end) ? refuse(c) : BL_AGAIN;
}

/* Errors that time may heal become BL_AGAIN while there is time. A connection
 * that is lost again and again leaves a try nothing to wait for. */
static int survive(struct contest *c, int rc)
{
	struct bl_err *err = c->me.call->err;
	enum bl_class class = bl_classify(err->native);
	bool conn = rc == BIZLOCK_CONN;
	bool over = conn && once(c) ? ++c->failures >= TRY_FAILURES : bl_passed(c->end);

	if (!conn && class != BL_CLASS_RETRY && class != BL_CLASS_STOPPED)
		return rc;
	if (!over) {
		bl_retry_count(c->me.client, err);
		bl_contender_pause(&c->me, c->end);
		return BL_AGAIN;
	}
	if (!conn)
		return refuse(c);
	return err->code = c->me.hold->unsure ? BIZLOCK_UNKNOWN : BIZLOCK_CONN;
}

static int turn(struct contest *c)
{
	int rc = bl_contender_look(&c->me);

	if (rc != BIZLOCK_OK)
		return rc;
	if (c->end == BL_NEVER && once(c))
		c->end = bl_now() + BL_GRACE_NS + 2 * BL_GRACE_JITTER_NS;
	if (bl_contender_owns(&c->me))
		return bl_contender_adopt(&c->me);
	return c->me.row.found && c->me.row.left_us > 0 ? while_held(c) : while_free(c);
}

/* Only the first step takes its chance unseen, because most locks are free. Who may
 * have the row already, from one that passed it on, looks. */
static int run(struct contest *c)
{
	bool fresh = !c->me.hold->unsure && !c->me.hold->bell;
	int rc = fresh ? bl_contender_attempt(&c->me, c->me.bells) : BL_AGAIN;

	for (;;) {
		if (rc == BIZLOCK_CONN || rc == BIZLOCK_DB)
			rc = survive(c, rc);
		if (rc != BL_AGAIN)
			return rc;
		rc = bl_call_check(c->me.call);
		if (rc != BIZLOCK_OK)
			return rc;
		rc = turn(c);
	}
}

/* Before the next one in line looks who holds it. With the mutex held. */
static void settle(struct contest *c)
{
	struct bl_contender *me = &c->me;

	if (me->hold->state == BL_HOLD_ACQUIRING)
		bl_acquire_settle(me->client, me->hold, me->won, me->request);
}

/* With the mutex held. OK: it was passed on to us. BL_AGAIN: ours to contend for. */
static int stand_in_line(struct contest *c, struct bl_place *place)
{
	struct bl_call *call = c->me.call;

	while (!bl_line_first(c->line, place)) {
		int rc = bl_call_check(call);

		if (rc != BIZLOCK_OK)
			return rc;
		if (!bl_cond_wait_until(&place->first, &c->me.client->mu, c->end) &&
		    !bl_line_first(c->line, place))
			return bl_err_set(call->err, BIZLOCK_TIMEOUT, "%s",
			                  c->line->holder[0] ? c->line->holder
			                                     : "others of this process are first");
	}
	return bl_pass_await(&c->me, place, c->end);
}

static int run_in_line(struct contest *c)
{
	struct bizlock *b = c->me.client;
	struct bl_place place;
	int rc;

	pthread_mutex_lock(&b->mu);
	c->line = bl_line_join(&b->lines, &c->me.call->key, &place);
	if (!c->line) {
		pthread_mutex_unlock(&b->mu);
		return bl_err_set(c->me.call->err, BIZLOCK_NOMEM, "out of memory");
	}
	bl_pass_hope(&c->me, &place);
	rc = stand_in_line(c, &place);
	if (rc == BL_AGAIN) {
		pthread_mutex_unlock(&b->mu);
		rc = run(c);
		pthread_mutex_lock(&b->mu);
	}
	if (rc == BIZLOCK_OK)
		settle(c);
	bl_line_leave(&b->lines, c->line, &place);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

static int run_alone(struct contest *c)
{
	struct bizlock *b = c->me.client;
	int rc = run(c);

	if (rc != BIZLOCK_OK)
		return rc;
	pthread_mutex_lock(&b->mu);
	settle(c);
	pthread_mutex_unlock(&b->mu);
	return rc;
}

int bl_contest(struct bl_call *call, const struct bl_request *request, struct bl_hold *hold,
               struct bl_won *ret)
{
	struct bizlock *b = call->client;
	struct contest c = {
	        .me = {.call = call,
	               .client = b,
	               .request = request,
	               .hold = hold,
	               .won = ret,
	               .bells = b->bells && !(request->flags & BIZLOCK_NO_QUEUE)},
	        .end = request->once ? BL_NEVER : call->deadline,
	};
	int rc = request->once ? run_alone(&c) : run_in_line(&c);

	if (rc != BIZLOCK_OK)
		bl_contender_give_bell_back(&c.me);
	return rc;
}
