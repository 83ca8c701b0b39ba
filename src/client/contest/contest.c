/* A turn looks at row and doorbell, lets bl_wait_next() decide what to do, and does it. Its
 * statements never wait for a row that another statement of bizlock's has locked: such waits make
 * deadlocks. Several keys, doorbells and rows, are taken by one statement or not at all. While a
 * set waits for one of its keys, it has at most that key's doorbell: so nobody waits for a set that
 * waits.
 *
 * Of the threads of this client that want one key, the first in its wait queue contends. Each step
 * but the decisions lets go of the mutex; meanwhile the thread owns its place in the queue, and its
 * holds, which are ACQUIRING and busy. */
#include "client/contest/contest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "client/conn/retry.h"
#include "client/contest/attempt.h"
#include "client/contest/crashed.h"
#include "client/contest/line.h"
#include "client/contest/share.h"
#include "client/contest/sleep.h"
#include "client/hold/drop.h"
#include "store/session/errclass.h"

/* A call that waits for nothing gives up after this many lost connections. The first may have
 * been idle, and closed by a server that is back by now. */
#define TRY_FAILURES 3

/* BUSY or TIMEOUT, naming the holder; but a server that is too slow has no holder to blame. */
static int refuse(struct bl_contest *c)
{
	int rc = c->request->once ? BIZLOCK_BUSY : BIZLOCK_TIMEOUT;
	const struct bl_key *key = &c->blocker->call.key;
	char holder[BL_ROW_TEXT_MAX];

	if (c->late && c->row->left_us <= 0 && !c->row->locked)
		return bl_err_set(c->call->err, BIZLOCK_TIMEOUT,
		                  "free, but each answer of the server came after the lease of "
		                  "%" PRIu32 " ms",
		                  c->request->lease_ms);
	bl_row_describe(c->row, holder, sizeof(holder));
	bl_err_set(c->call->err, rc, "%s", holder);
	return c->n == 1 ? rc : bl_err_wrap(c->call->err, "%s/%s", key->type, key->id);
}

/* DB, or TIMEOUT after a wait: not a holder of the lock is in the way, but another session, which
 * keeps the table, or rows of it, locked. */
static int refuse_locked(struct bl_contest *c)
{
	const char *table = c->client->sql.lock_table;
	int rc = bl_err_locked(c->call->err, c->request->once ? BIZLOCK_DB : BIZLOCK_TIMEOUT, table,
	                       c->locked);

	if (bl_line_leads(c))
		bl_queue_note(c->queue, c->call->err->msg);
	return rc;
}

/* A statement waits for a lock of the server's for a second, even if its call has less time. So a
 * call tries again only while it has time, and a call with wait_ms 0 does not. */
static int survive_wait(struct bl_contest *c)
{
	bool again = c->in_vain;

	c->in_vain = true;
	c->guessed = false;
	c->client->in_vain_at = bl_now();
	if (again && (c->request->once || bl_passed(c->wait.end)))
		return refuse_locked(c);
	bl_count_retry(&c->client->numbers, c->call->err);
	return c->request->once ? BL_AGAIN : bl_contest_pause(c, c->wait.end);
}

/* Errors that time may heal become BL_AGAIN while there is time. A call with wait_ms 0 gives up
 * after TRY_FAILURES lost connections. */
static int survive(struct bl_contest *c, int rc)
{
	struct bl_err *err = c->call->err;
	enum bl_class class = bl_classify(err->native);
	bool conn = rc == BIZLOCK_CONN;
	bool over =
	        conn && c->request->once ? ++c->failures >= TRY_FAILURES : bl_passed(c->wait.end);

	if (bl_may_be_swapped(err, &c->missing_at))
		return bl_contest_pause(c, c->missing_at + BL_SWAP_NS);
	if (!conn && class != BL_CLASS_RETRY && class != BL_CLASS_STOPPED)
		return rc;
	if (!conn && bl_waited_in_vain(err))
		return survive_wait(c);
	BL_TRACE_WAIT(c, "%s: %s", over ? "gives up" : "tries again", err->msg);
	if (!over) {
		bl_count_retry(&c->client->numbers, err);
		return bl_contest_pause(c, c->wait.end);
	}
	if (!conn)
		return refuse(c);
	return err->code = c->unsure ? BIZLOCK_UNKNOWN : BIZLOCK_CONN;
}

/* ---- rows that a lost reply may have left -------------------------------------------------- */

/* Is the row seen last ours? Not if it belongs to a hold we know of: that of a thread which
 * ended and left its number to this one. */
static bool owns(const struct bl_contest *c)
{
	const struct bl_row *row = c->row;

	if (c->among)
		return c->others.mine && row->left_us <= 0 && !row->locked && !c->others.uncleared;
	return c->unsure && row->left_us > 0 && row->depth > 0 &&
	       strcmp(row->owner, c->call->owner_full) == 0 &&
	       !bl_held_with_fence(&c->client->held, &c->call->key, row->fence);
}

/* A request asks once in a turn, because a cancel is heard between two turns, and its thread serves
 * others. */
static int drop_all_unknown(struct bl_contest *c)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; i < c->n && rc == BIZLOCK_OK; i++) {
		struct bl_call call = c->members[i]->call;

		if (c->op)
			call.io_deadline = bl_earlier(call.io_deadline, bl_attempt_patience(c).end);
		rc = bl_drop_unknown(&call, c->members[i]->hold);
	}
	c->unsure = rc != BIZLOCK_OK;
	return rc == BIZLOCK_UNKNOWN ? c->call->err->code = BIZLOCK_CONN : rc;
}

/* ---- the turns ----------------------------------------------------------------------------- */

static void trace_turn(const struct bl_contest *c, const struct bl_seen *seen, enum bl_next next)
{
	static const char *const does[] = {
	        [BL_NEXT_TRY] = "goes for the row",
	        [BL_NEXT_TRY_PAST] = "goes past the doorbell",
	        [BL_NEXT_SLEEP] = "waits for the doorbell",
	        [BL_NEXT_POLL] = "polls",
	        [BL_NEXT_REFUSE] = "gives up",
	};
	const char *bell = !c->wait.bells    ? "not used"
	                   : seen->bell_ours ? "ours"
	                   : !seen->bell_by  ? "nobody's"
	                   : c->among        ? "the first contender's"
	                   : seen->by_holder ? "the holder's"
	                                     : "another contender's";
	char row[BL_ROW_TEXT_MAX] = "free";

	if (seen->left_ns > 0 || seen->fenced)
		bl_row_describe(c->row, row, sizeof(row));
	else if (c->row->found)
		snprintf(row, sizeof(row), "its lease is over");
	BL_TRACE_WAIT(c, "row: %s; doorbell: %s; %s", row, bell, does[next]);
}

/* Waits for `next`, at most until `until`. */
static int wait_for(struct bl_contest *c, enum bl_next next, bl_time until)
{
	if (bl_line_move(c)) {
		c->parked_until = c->wait.end;
		return BL_PARKED;
	}
	if (c->among && next == BL_NEXT_POLL)
		return bl_shared_outwait(c, until);
	/* A set that waits for a sharer has no place in line to sleep at. */
	if (next == BL_NEXT_POLL || (c->n > 1 && c->row->shares))
		return bl_contest_pause(c, until);
	return bl_contest_sleep(c, until);
}

static int act(struct bl_contest *c)
{
	struct bl_seen seen = {
	        .left_ns = c->row->found ? c->row->left_us * 1000 : 0,
	        .fenced = c->row->locked,
	        .by_holder = c->row->bell && c->row->bell == c->row->bell_by,
	        .bell_by = c->row->bell_by,
	        .bell_ours = c->n == 1 && c->members[0]->hold->bell,
	};
	enum bl_next next;
	bl_time until;

	/* Among sharers, the owner of the doorbell is first in line, and gives it on; but if slot 0
	 * is ours, that owner waits for us. */
	if (c->among)
		seen.by_holder = seen.bell_by;
	seen.bell_ours |= c->stays && seen.bell_by;

	next = bl_wait_next(&c->wait, &seen, bl_now(), bl_random(c->client), &until);
	if (next == BL_NEXT_SLEEP || next == BL_NEXT_POLL)
		BL_PROBE(waiting, &c->blocker->call.key, &c->call->owner, c->row->fence);
	if (bl_traces(&c->client->trace))
		trace_turn(c, &seen, next);
	switch (next) {
	case BL_NEXT_TRY:
		return bl_attempt(c, c->wait.bells);
	case BL_NEXT_TRY_PAST:
		return c->among ? bl_shared_go_past(c) : bl_attempt(c, false);
	case BL_NEXT_SLEEP:
	case BL_NEXT_POLL:
		return wait_for(c, next, until);
	case BL_NEXT_REFUSE:
		break;
	}
	return refuse(c);
}

/* Only a server that contradicts itself says again and again that the row is ours, and that it is
 * not. */
static int adopt(struct bl_contest *c)
{
	bl_time end = c->request->once ? c->call->io_deadline : c->call->deadline;
	int rc = bl_attempt_adopt(c);

	if (rc != BL_AGAIN)
		return rc;
	if (bl_passed(end))
		return bl_err_set(c->call->err, BIZLOCK_UNKNOWN,
		                  "the server says both that the row is ours and that it is not");
	return bl_contest_pause(c, end);
}

/* A doorbell that was taken in vain is of use to the next contender. If its connection is not free
 * in time, hold->bell keeps it, and the janitor gives it back. */
static void give_bell_back(struct bl_contest *c)
{
	struct bl_err kept = *c->call->err;

	bl_drop_bell(c->call, &c->members[0]->hold->bell);
	*c->call->err = kept;
}

static int look(struct bl_contest *c)
{
	struct bl_hold *first = c->members[0]->hold;
	int rc = c->seen && c->row->left_us > 0 ? BIZLOCK_OK : bl_attempt_look(c);

	c->seen = c->alone = false;
	c->missing_at = rc == BIZLOCK_OK ? 0 : c->missing_at;
	if (rc != BIZLOCK_OK || c->row->left_us <= 0)
		return rc;
	if (bl_line_leads(c)) {
		char holder[BL_ROW_TEXT_MAX];

		bl_row_describe(c->row, holder, sizeof(holder));
		bl_queue_note(c->queue, holder);
	}
	/* A request with a doorbell would have to poll, and thousands of requests must not. Among
	 * sharers it keeps the doorbell: that is its place in line. */
	if (c->op && first->bell && !c->among && !owns(c))
		give_bell_back(c);
	return bl_crashed_end_lease(c);
}

/* How long an answer that the table is locked serves others, too, but not for their last word. The
 * server takes as long for an answer, and hundreds of requests may ask, each of them with a
 * thread. */
#define LOCKED_NS (200 * BL_NS_PER_MS)

/* After a statement that waited in vain, asks whether the table is locked before another statement
 * may wait: so the call ends in time. OK: it is not locked. */
static int ask_table(struct bl_contest *c)
{
	bool last = c->request->once || bl_passed(c->wait.end), reads;
	int rc;

	if (!last && !bl_passed(c->client->locked_at + LOCKED_NS))
		return bl_contest_pause(c, c->wait.end);
	rc = bl_attempt_ask_table(c, &reads);
	c->locked = rc == BIZLOCK_DB && bl_table_locked(c->call->err);
	if (rc != BIZLOCK_OK && !c->locked)
		return rc;
	if (c->locked)
		c->client->locked_at = bl_now();
	if (!last && c->locked)
		return bl_contest_pause(c, c->wait.end);
	c->in_vain = last && (c->locked || !c->guessed);
	if (!c->in_vain)
		return BIZLOCK_OK;
	if (reads) {
		rc = look(c);
		if (rc != BIZLOCK_OK && !bl_waited_in_vain(c->call->err))
			return rc;
		if (rc == BIZLOCK_OK && c->n == 1 && owns(c))
			return adopt(c);
		if (rc == BIZLOCK_OK && (c->row->left_us > 0 || c->row->locked))
			return refuse(c);
	}
	return refuse_locked(c);
}

static int turn(struct bl_contest *c)
{
	int rc = bl_call_check(c->call);

	if (rc == BIZLOCK_OK && c->in_vain)
		rc = ask_table(c);
	if (c->in_vain) /* still: that was its end, or nothing may be sent yet */
		return rc;
	if (rc == BIZLOCK_OK && c->n > 1 && c->unsure) /* our own rows would be in the way */
		rc = drop_all_unknown(c);
	if (rc == BIZLOCK_OK)
		rc = look(c);
	/* Deadline passed while waiting for a connection: report the last holder seen. */
	if (rc == BIZLOCK_TIMEOUT && c->row->left_us > 0)
		return refuse(c);
	if (rc != BIZLOCK_OK)
		return rc;
	return c->n == 1 && owns(c) ? adopt(c) : act(c);
}

static const struct bl_hold *hold_at_home(const struct bl_contest *c, const struct bl_key *key,
                                          bl_time now)
{
	const struct bl_hold *h = bl_held_of_key(&c->client->held, key);

	while (h && (h->state != BL_HOLD_HELD || h->key.slot > 0 || h->expires <= now))
		h = bl_held_next_of_key(h);
	return h;
}

/* If another owner of this client holds a key, a request trusts that, and asks the server only
 * once it hears that the key is free: that owner may have lost the lock and not know it. */
static void look_at_home(struct bl_contest *c)
{
	const struct bl_hold *h = NULL;
	bl_time now = bl_now();
	uint64_t bell = 0;

	for (size_t i = 0; i < c->n && !h; i++) {
		h = hold_at_home(c, &c->members[i]->call.key, now);
		c->blocker = h ? c->members[i] : c->blocker;
	}
	if (!h)
		return;
	if (bl_pool_find(&c->client->pool, h->bell)) /* or it has gone with its connection */
		bell = h->bell;
	*c->row = (struct bl_row){.found = true,
	                          .fence = h->fence,
	                          .depth = h->depth,
	                          .left_us = (h->expires - now) / 1000,
	                          .bell = bell,
	                          .bell_by = bell};
	bl_owner_full(&h->owner, &c->client->process, c->row->owner);
	c->seen = true;
}

bool bl_contest_wants_batch(const struct bl_contest *c)
{
	bool suits = !c->among || (c->phase == BL_CONTEST_PASSES && bl_shared_may_pass(c));

	return suits && c->n == 1 && c->op && !c->seen && !c->alone && !c->in_vain &&
	       c->wait.bells && c->client->config.combine && !c->unsure &&
	       !c->members[0]->hold->bell;
}

/* rc: of the attempt to pass the queue. If it failed, the next attempt meets the same error, and
 * deals with it. */
static int end_pass(struct bl_contest *c, int rc)
{
	if (rc == BIZLOCK_OK)
		return rc;
	c->in_vain |= rc == BIZLOCK_DB && bl_waited_in_vain(c->call->err);
	c->phase = BL_CONTEST_LINE;
	return BL_AGAIN;
}

/* What shares without a limit goes for it while nobody who wants the lock alone is before it in the
 * queue, where it has its place already: one that comes later does not pass it. */
static int pass(struct bl_contest *c)
{
	if (!bl_shared_may_pass(c))
		return end_pass(c, BL_AGAIN);
	if (bl_contest_wants_batch(c))
		return bl_call_check(c->call) == BIZLOCK_OK ? BL_AGAIN : BIZLOCK_CANCELLED;
	return end_pass(c, bl_shared_attempt(c, false));
}

#define IN_VAIN_NS (1000 * BL_NS_PER_MS)

/* A request for several keys goes in no batch, and its statement keeps a thread. While the table is
 * locked, each statement would wait for a second, one after the other. So shortly after one that
 * waited in vain, such a request asks first. */
static bool may_wait_in_vain(const struct bl_contest *c)
{
	return c->op && c->n > 1 && !c->request->once &&
	       !bl_passed(c->client->in_vain_at + IN_VAIN_NS);
}

static int begin(struct bl_contest *c)
{
	bool bells = c->client->bells && !(c->request->flags & BIZLOCK_NO_QUEUE);

	c->phase = BL_CONTEST_PASSES;
	c->among = c->call->key.slot > 0;
	c->wait = bl_wait_begin(c->request->once, c->call->deadline, bells, c->n > 1);
	c->in_vain = c->guessed = may_wait_in_vain(c);
	c->blocker = c->members[0];
	return bl_line_join(c);
}

/* No connection was free for a request. */
static bool has_to_come_again(const struct bl_contest *c, int rc)
{
	return rc == BIZLOCK_TIMEOUT && c->op && !bl_passed(bl_attempt_conn_end(c));
}

int bl_contest_go_on(struct bl_contest *c, int rc)
{
	if (c->phase == BL_CONTEST_PASSES)
		return end_pass(c, rc);
	while (rc == BL_AGAIN || rc == BIZLOCK_CONN || rc == BIZLOCK_DB ||
	       has_to_come_again(c, rc)) {
		if (rc == BIZLOCK_TIMEOUT)
			rc = bl_contest_pause(c, c->wait.end);
		else if (rc != BL_AGAIN)
			rc = survive(c, rc);
		if (rc != BL_AGAIN)
			break;
		if (c->op && !c->among && !c->seen && !c->abroad)
			look_at_home(c);
		if (bl_contest_wants_batch(c))
			return bl_call_check(c->call) == BIZLOCK_OK ? BL_AGAIN : BIZLOCK_CANCELLED;
		rc = turn(c);
	}
	return rc;
}

/* Lets another client go first, whose watcher was woken for this key. */
static int give_way(struct bl_contest *c)
{
	bl_time until = bl_yields_until(&c->client->yields, &c->call->key);

	if (!until || c->request->once || c->unsure || c->members[0]->hold->bell)
		return BL_AGAIN;
	c->parked_until = bl_earlier(until, c->wait.end);
	BL_TRACE_WAIT(c, "lets another client go first, whose watcher was woken");
	if (c->op)
		return BL_PARKED;
	bl_call_sleep(c->call, c->parked_until);
	return BL_AGAIN;
}

int bl_contest_step(struct bl_contest *c)
{
	int rc = c->phase == BL_CONTEST_BEGINS ? begin(c) : BIZLOCK_OK;

	if (rc == BIZLOCK_OK && c->phase == BL_CONTEST_PASSES)
		rc = pass(c);
	else if (rc == BIZLOCK_OK)
		rc = BL_AGAIN;
	if (rc != BL_AGAIN || c->phase == BL_CONTEST_PASSES)
		return rc;
	if (c->phase == BL_CONTEST_LINE) {
		rc = c->queue ? bl_line_stand(c) : BL_AGAIN;
		if (rc != BL_AGAIN)
			return rc;
		c->phase = BL_CONTEST_FIRST;
		for (size_t i = 0; i < c->n; i++)
			bl_held_contends(&c->client->held, c->members[i]->hold);
	}
	if (c->watched) {
		rc = bl_contest_unwatch(c);
	} else if (c->phase == BL_CONTEST_FIRST) {
		rc = give_way(c);
		if (rc == BL_PARKED)
			return rc;
		c->phase = BL_CONTEST_TURNS;
		/* The first attempt goes without a look, because most locks are free. A thread to
		 * which the lock may have been handed over looks first. */
		if (!c->unsure && !c->in_vain && !c->members[0]->hold->bell) {
			BL_TRACE_WAIT(c, "goes for the row, without a look");
			if (!bl_contest_wants_batch(c))
				rc = bl_attempt(c, c->wait.bells);
		}
	}
	if (rc == BL_AGAIN && bl_line_fall_back(c)) {
		c->phase = BL_CONTEST_LINE;
		return bl_line_stand(c);
	}
	return bl_contest_go_on(c, rc);
}

void bl_contest_forget(struct bl_contest *c)
{
	if (c->watched)
		bl_watch_leave(c->client, c->watched);
	c->watched = NULL;
	bl_line_leave(c);
}

/* Gives back rows that were taken with a fence that is not valid. If the server cannot be asked
 * now, the janitor does that. */
static void undo(struct bl_contest *c)
{
	struct bl_err kept = *c->call->err;

	drop_all_unknown(c);
	c->stays &= c->unsure;
	*c->call->err = kept;
}

void bl_contest_leave(struct bl_contest *c, int rc)
{
	if (rc == BIZLOCK_SCHEMA && c->unsure)
		undo(c);
	if (rc == BIZLOCK_OK && c->queue && bl_shared_without_limit(c))
		bl_line_take_along(c);
	bl_contest_forget(c);
	if (c->among)
		bl_shared_leave(c, rc);
	else if (rc != BIZLOCK_OK && c->n == 1 && c->members[0]->hold->bell)
		give_bell_back(c);
}
