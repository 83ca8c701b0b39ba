/* Taking a row of a shared lock, and drawing new fences for it. */
#include "store/shared/sharers.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "store/bell/sleepers.h"
#include "store/session/errclass.h"
#include "store/shared/in_way.h"

/* A condition: the contender cannot have a row now. Then @bizlock_slot is NULL. The reads lock
 * nothing. */
static void add_obstacles(struct bl_session *s, const struct bl_shared_go *go)
{
	const struct bl_wish *wish = &go->wish;

	if (go->bell == BL_BELL_TAKE)
		bl_buf_adds(&s->text, "NOT (@bizlock_bell <=> 1) OR ");
	else if (go->bell == BL_BELL_PASS && wish->bell)
		bl_buf_addf(&s->text, "IS_USED_LOCK('%s') IS NOT NULL OR ", wish->bell);
	if (wish->exclusive && !go->stay) {
		bl_shared_add_exists(s, wish, SHARING " AND " TAKEN);
		bl_buf_adds(&s->text, " OR ");
	}
	if (wish->limit) {
		bl_shared_add_count(s, wish);
		bl_buf_addf(&s->text, " >= %" PRIu32 " OR ", wish->limit);
	}
	bl_buf_addf(&s->text, "EXISTS(SELECT 1 FROM %s", s->sql->table);
	bl_sql_key(&s->text, wish->key);
	bl_buf_addf(&s->text, " AND slot = 0 AND %s AND owner <> ",
	            wish->exclusive ? "timeout > " NOW : TAKEN);
	bl_shared_add_owner(s, wish);
	bl_buf_adds(&s->text, ")");
}

/* The lowest free slot, NULL: there is none. Below it the nth taken slot is slot n, so one pass
 * over the rows finds it, whatever the limit is. */
static void add_free_slot(struct bl_session *s, const struct bl_wish *wish)
{
	bl_buf_adds(&s->text, "(SELECT NULLIF(COUNT(*) + 1, ");
	bl_buf_addf(&s->text,
	            "%" PRIu32 ") FROM (SELECT slot, ROW_NUMBER() OVER (ORDER BY slot) AS nth "
	            "FROM %s",
	            wish->limit + 1, s->sql->table);
	bl_sql_key(&s->text, wish->key);
	bl_buf_addf(&s->text,
	            " AND slot BETWEEN 1 AND %" PRIu32 " AND " TAKEN ") AS taken WHERE slot = nth)",
	            wish->limit);
}

static void add_choice(struct bl_session *s, const struct bl_shared_go *go)
{
	bl_buf_adds(&s->text, "SELECT IF(");
	add_obstacles(s, go);
	bl_buf_adds(&s->text, ",NULL,");
	if (go->wish.exclusive)
		bl_buf_adds(&s->text, "0");
	else if (go->wish.limit)
		add_free_slot(s, &go->wish);
	else
		bl_buf_addf(&s->text, "%" PRIu32, go->slot);
	bl_buf_addf(&s->text, "),(SELECT fence FROM %s", s->sql->table);
	bl_sql_key(&s->text, go->wish.key);
	bl_buf_adds(&s->text, " AND slot = 0) INTO @bizlock_slot,@bizlock_before;");
}

static void add_id(struct bl_session *s, const struct bl_key *key)
{
	bl_sql_literal(&s->text, "_utf8mb4", key->id, key->id_len);
}

static void add_type(struct bl_session *s, const struct bl_key *key)
{
	bl_sql_literal(&s->text, "_utf8mb4", key->type, key->type_len);
}

/* As in TAKE (sql.c): a NULL biz_type is refused, `timeout` comes last. A sharer's row that is over
 * has no owner here: with an owner it would be in the way. Slot 0 may have an owner, who has died.
 * If a row is our own, from a statement whose reply was lost, its lease begins anew. */
#define ANEW(column) ", " column " = IF(" OVER ", VALUES(" column "), " column ")"

void bl_shared_add_values(struct bl_session *s, const struct bl_shared_go *go)
{
	const struct bl_claim *claim = go->claim;
	const char *note = claim->note ? claim->note : "";
	bool keeps_bell =
	        go->wish.exclusive && (go->bell == BL_BELL_TAKE || go->bell == BL_BELL_OURS);

	bl_buf_addf(&s->text,
	            "INSERT INTO %s (biz_id, biz_type, slot, at_most, owner, reentrant, timeout, "
	            "bell, note, gmt_create, gmt_modified) VALUES (",
	            s->sql->table);
	add_id(s, go->wish.key);
	bl_buf_adds(&s->text, ",IF(@bizlock_slot IS NULL,NULL,");
	add_type(s, go->wish.key);
	bl_buf_addf(&s->text, "),IFNULL(@bizlock_slot,0),%" PRIu32 ",", go->wish.limit);
	bl_shared_add_owner(s, &go->wish);
	bl_buf_addf(&s->text, ",%d," NOW " + INTERVAL %" PRId64 " MICROSECOND,%s,", !go->stay,
	            (int64_t)claim->lease_ms * 1000, keeps_bell ? "CONNECTION_ID()" : "0");
	bl_sql_literal(&s->text, "_utf8mb4", note, strlen(note));
	bl_buf_adds(&s->text, "," NOW "," NOW ") ON DUPLICATE KEY UPDATE ");
}

static void add_insert(struct bl_session *s, const struct bl_shared_go *go)
{
	bl_shared_add_values(s, go);
	bl_buf_adds(&s->text,
	            "taken_from = IF(" OVER ", " TAKEN_FROM
	            ", taken_from)" ANEW("at_most") ANEW("fence") ANEW("owner") ANEW("reentrant")
	                    ANEW("bell") ANEW("note") ANEW("gmt_create")
	                            ANEW("gmt_modified") ", timeout = IF(owner = VALUES(owner), "
	                                                 "VALUES(timeout), timeout);");
}

/* The beginning of an IF: does the owner have the row still, with a lease that is not over? */
static void add_if_ours(struct bl_session *s, const struct bl_wish *wish)
{
	bl_buf_adds(&s->text, "IF(owner = ");
	bl_shared_add_owner(s, wish);
	bl_buf_adds(&s->text, " AND timeout > " NOW ", ");
}

/* An INSERT of a free row, without an owner; up to what becomes of a row that is there. */
static void add_free_row(struct bl_session *s, const struct bl_wish *wish, uint32_t slot)
{
	struct bl_key key = *wish->key;

	key.slot = slot;
	bl_sql_begin_set(s->sql, &s->text);
	bl_sql_add_free_row(&s->text, true, &key);
	bl_buf_adds(&s->text, " ON DUPLICATE KEY UPDATE fence = ");
}

static void add_header(struct bl_session *s, const struct bl_wish *wish)
{
	add_free_row(s, wish, 0);
	bl_buf_adds(&s->text, "fence;");
}

/* If the owner's row has gone meanwhile, the INSERT leaves a free row. */
static void add_draw(struct bl_session *s, const struct bl_wish *wish, uint32_t slot,
                     int64_t lease_us)
{
	add_free_row(s, wish, slot);
	add_if_ours(s, wish);
	bl_buf_adds(&s->text, "VALUES(fence), fence)");
	if (lease_us > 0) {
		bl_buf_adds(&s->text, ", reentrant = ");
		add_if_ours(s, wish);
		bl_buf_adds(&s->text, "1, reentrant), gmt_create = ");
		add_if_ours(s, wish);
		bl_buf_adds(&s->text, NOW ", gmt_create), timeout = ");
		add_if_ours(s, wish);
		bl_buf_addf(&s->text,
		            "GREATEST(timeout, " NOW " + INTERVAL %" PRId64
		            " MICROSECOND), timeout)",
		            lease_us);
	}
	bl_buf_adds(&s->text, ";");
}

/* ---- one go -------------------------------------------------------------------------------- */

/* A text that changes a row, and the result of the look after it. */
struct sent {
	const struct bl_wish *wish;
	struct bl_shared_seen *seen;
	unsigned inserts; /* the statement that makes the row, and */
	unsigned looks;   /* the one that reads it */
	unsigned answered;
	bool read;
};

static void read_sent(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct sent *g = arg;

	g->answered = statement + 1;
	if (statement != g->looks || !rows || rows->columns != BL_SHARED_COLUMNS)
		return;
	bl_shared_judge(g->wish, rows, g->seen, NULL);
	g->read = true;
}

/* A cluster's member looks by a statement of its own, once it has caught up with the others. */
static int look_behind(struct bl_session *s, const struct sent *g, struct bl_err *err)
{
	if (bl_sql_in_cluster(s->sql))
		return bl_shared_look(s, g->wish, BL_SHARED_READ, g->seen, err);
	return g->read ? BIZLOCK_OK
	               : bl_session_refuse(s, err, "no rows where they were asked for");
}

/* The release of an exclusive owner deletes slot 0. A sharer that is next in line makes slot 0
 * before it passes the doorbell on: else an exclusive contender behind it would make slot 0, and
 * overtake it. A slot 0 that is there may be fenced, and is not touched. */
static int lacks_header(struct bl_session *s, const struct bl_shared_go *go, bool *ret,
                        struct bl_err *err)
{
	struct bl_key key = *go->wish.key;
	struct bl_row row = {.found = true};
	int rc = BIZLOCK_OK;

	key.slot = 0;
	if (!go->wish.exclusive && go->bell == BL_BELL_OURS)
		rc = bl_lock_look(s, &key, NULL, &row, err);
	*ret = !row.found;
	return rc;
}

static int send_go(struct bl_session *s, const struct bl_shared_go *go, struct sent *g,
                   struct bl_err *err)
{
	bool gives_bell = !go->wish.exclusive && go->bell >= BL_BELL_TAKE;
	bool looks = !bl_sql_in_cluster(s->sql);
	bool draws = go->wish.exclusive && looks && !go->stay; /* a place in line gets its hold's
	                                                          fence later */
	bool heads;
	int rc = lacks_header(s, go, &heads, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_reset(&s->text);
	if (go->bell == BL_BELL_TAKE)
		bl_buf_addf(&s->text, "SELECT GET_LOCK('%s',0) INTO @bizlock_bell;", go->wish.bell);
	if (heads)
		add_header(s, &go->wish);
	add_choice(s, go);
	g->inserts = 1 + (go->bell == BL_BELL_TAKE) + heads;
	add_insert(s, go);
	/* A new fence, now that our row is visible: earlier owners may have had a larger one than
	 * the first. A cluster's member may not have applied the earlier rows yet, so its number
	 * could be smaller even now. */
	if (draws)
		add_draw(s, &go->wish, 0, 0);
	if (looks)
		bl_shared_add_look(s, &go->wish, go->wish.exclusive ? NULL : BL_SHARED_CHOICE);
	bl_buf_adds(&s->text, looks ? ";" : "");
	g->looks = g->inserts + 1 + draws;
	if (gives_bell)
		bl_sleepers_add_rings(s, &go->wish.bell, 1);
	rc = bl_session_each(s, g->looks + looks, read_sent, g, err);
	if (rc == BIZLOCK_OK && gives_bell)
		bl_sleepers_wake(s, &go->wish.bell, 1, BL_SLEEPERS_WATCHING);
	s->woke = false;
	return rc;
}

/* A contender whose row was refused keeps the doorbell, if it got it. */
static int refused(struct bl_session *s, const struct bl_shared_go *go, enum bl_took *ret,
                   struct bl_err *err)
{
	bool takes_bell = go->bell == BL_BELL_TAKE;
	const char *text = takes_bell ? "SELECT @bizlock_bell" : "SELECT @bizlock_slot IS NOT NULL";
	int64_t number = 0;
	int rc = BIZLOCK_OK;

	*ret = BL_TOOK_NOTHING;
	if (takes_bell || go->slot > 0)
		rc = bl_session_ask(s, text, strlen(text), NULL, &number, err);
	if (rc != BIZLOCK_OK)
		bl_session_leave(s);
	else if (number == 1)
		*ret = takes_bell ? BL_TOOK_BELL : BL_TOOK_SLOT;
	return rc;
}

/* ---- one more that shares it, without a limit ----------------------------------------------- */

static int insert(struct bl_session *s, const struct bl_shared_go *go, struct bl_done *ret,
                  struct bl_err *err)
{
	bl_params_key(&s->params, go->wish.key);
	s->params.slot = go->slot;
	bl_params_owner(&s->params, go->claim->owner);
	bl_params_note(&s->params, go->claim->note);
	s->params.lease_us = (int64_t)go->claim->lease_ms * 1000;
	return bl_session_exec(s, BL_STMT_SHARED_TAKE, ret, err);
}

/* The same by prepared statements, which are a third of the work; this is the common case. */
static int take_any_slot(struct bl_session *s, const struct bl_shared_go *go,
                         enum bl_took *ret_took, struct bl_shared_seen *ret, struct bl_err *err)
{
	struct bl_key key = *go->wish.key;
	struct bl_done done = {0, 0};
	struct bl_row row, before;
	int rc;

	*ret_took = BL_TOOK_NOTHING;
	key.slot = 0;
	rc = bl_lock_look(s, &key, go->wish.bell, &before, err);
	if (rc != BIZLOCK_OK || before.left_us > 0 || before.owner[0] ||
	    (go->bell == BL_BELL_PASS && before.bell_by))
		return rc;
	rc = insert(s, go, &done, err);
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL) {
		*ret_took = BL_TOOK_SLOT;
		return BIZLOCK_OK;
	}
	/* A statement that failed may have made a row. */
	*ret_took = BL_TOOK_MAYBE;
	if (rc != BIZLOCK_OK)
		return rc;
	if (bl_sql_in_cluster(s->sql))
		rc = bl_lock_catch_up(s, NULL, err);
	if (rc == BIZLOCK_OK)
		rc = bl_lock_look(s, &key, go->wish.bell, &row, err);
	if (rc != BIZLOCK_OK)
		return rc;
	*ret_took = BL_TOOK_ALL;
	*ret = (struct bl_shared_seen){.mine = true,
	                               .slot = go->slot,
	                               .fence = done.insert_id,
	                               .header = row.fence,
	                               .before = before.fence,
	                               .exclusively = row.left_us > 0,
	                               .uncleared = row.left_us <= 0 && row.owner[0]};
	if (ret->exclusively)
		ret->in_way = row;
	ret->in_way.bell_by = row.bell_by;
	return rc;
}

int bl_shared_take(struct bl_session *s, const struct bl_shared_go *go, enum bl_took *ret_took,
                   struct bl_shared_seen *ret, struct bl_err *err)
{
	bool any_slot = !go->wish.exclusive && !go->wish.limit;
	struct sent g = {.wish = &go->wish, .seen = ret};
	struct bl_err ignored;
	int rc;

	if (any_slot && go->bell <= BL_BELL_PASS)
		return take_any_slot(s, go, ret_took, ret, err);
	rc = send_go(s, go, &g, err);
	*ret_took = BL_TOOK_NOTHING;
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_NULL && !s->gone)
		return refused(s, go, ret_took, err);
	if (rc == BIZLOCK_OK)
		rc = look_behind(s, &g, err);
	ret->drawn = !bl_sql_in_cluster(s->sql) && !go->stay;
	*ret_took = BL_TOOK_ALL;
	if (rc == BIZLOCK_OK)
		return rc;
	*ret_took = g.answered > g.inserts ? BL_TOOK_MAYBE : BL_TOOK_NOTHING;
	if (go->bell >= BL_BELL_TAKE && !s->gone)
		bl_sleepers_ring(s, &go->wish.bell, 1, &ignored);
	return rc;
}

int bl_shared_draw(struct bl_session *s, const struct bl_wish *wish,
                   const struct bl_shared_seen *had, int64_t lease_us, struct bl_shared_seen *ret,
                   struct bl_err *err)
{
	bool heads = !wish->exclusive && had->header == 0;
	struct sent g = {.wish = wish, .seen = ret, .looks = heads ? 2 : 1};
	char slot[16];
	int rc;

	bl_buf_reset(&s->text);
	if (heads)
		add_header(s, wish);
	add_draw(s, wish, had->slot, lease_us);
	if (!bl_sql_in_cluster(s->sql)) {
		snprintf(slot, sizeof(slot), "%" PRIu32, had->slot);
		bl_shared_add_look(s, wish, wish->exclusive ? NULL : slot);
	}
	rc = bl_session_each(s, UINT_MAX, read_sent, &g, err);
	if (rc == BIZLOCK_OK)
		rc = look_behind(s, &g, err);
	ret->before = had->header;
	ret->drawn = true;
	return rc;
}

/* key->slot: the first slot of the rows that the text finds. */
static int ask_slot(struct bl_session *s, struct bl_key *key, bool *ret_found, struct bl_err *err)
{
	int64_t next = 0;
	int rc;

	bl_buf_adds(&s->text, " ORDER BY slot LIMIT 1");
	rc = bl_session_ask_text(s, NULL, &next, err);
	*ret_found = rc == BIZLOCK_OK && next > 0;
	if (*ret_found)
		key->slot = (uint32_t)(next - 1);
	return rc;
}

static void begin_to_ask_slot(struct bl_session *s, const struct bl_key *key)
{
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT slot + 1 FROM %s", s->sql->table);
	bl_sql_key(&s->text, key);
}

static int find_once(struct bl_session *s, struct bl_key *key, uint64_t fence, bool *ret_found,
                     struct bl_err *err)
{
	begin_to_ask_slot(s, key);
	bl_buf_addf(&s->text, " AND owner <> '' AND fence + 0 = %" PRIu64, fence);
	return ask_slot(s, key, ret_found, err);
}

int bl_shared_find(struct bl_session *s, struct bl_key *key, uint64_t fence, bool *ret_found,
                   struct bl_err *err)
{
	bool again = false;
	int rc = find_once(s, key, fence, ret_found, err);

	if (rc == BIZLOCK_OK && !*ret_found)
		rc = bl_lock_catch_up(s, &again, err);
	return again ? find_once(s, key, fence, ret_found, err) : rc;
}

/* ---- what a lost reply may have left ------------------------------------------------------- */

static int sweep_slots(struct bl_session *s, struct bl_ref hold, bool *ret_matched,
                       struct bl_err *err)
{
	struct bl_key key = *hold.key;
	struct bl_ref row = {.key = &key, .owner = hold.owner, .fence = hold.fence};
	int rc = BIZLOCK_OK;

	*ret_matched = false;
	for (uint32_t from = 0; rc == BIZLOCK_OK; from = key.slot + 1) {
		bool found, matched = false;

		begin_to_ask_slot(s, hold.key);
		bl_buf_addf(&s->text,
		            " AND slot >= %" PRIu32 " AND fence <> %" PRIu64 " AND owner = ", from,
		            hold.fence);
		bl_sql_literal(&s->text, "_ascii", hold.owner, strlen(hold.owner));
		rc = ask_slot(s, &key, &found, err);
		if (!found)
			return rc;
		rc = bl_lock_sweep_row(s, row, &matched, err);
		*ret_matched |= matched;
	}
	return rc;
}

int bl_shared_sweep(struct bl_session *s, struct bl_ref hold, bool *ret_matched, struct bl_err *err)
{
	int (*sweep)(struct bl_session *, struct bl_ref, bool *, struct bl_err *) =
	        hold.key->slot > 0 ? sweep_slots : bl_lock_sweep_row;
	bool again = false;
	int rc = sweep(s, hold, ret_matched, err);

	if (rc == BIZLOCK_OK && !*ret_matched)
		rc = bl_lock_catch_up(s, &again, err);
	return again ? sweep(s, hold, ret_matched, err) : rc;
}
