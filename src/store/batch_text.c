/* The SQL of a batch. */

/* Two packets. The first rings the doorbells of the acquisitions, and looks which of
 * their keys are free:
 *
 *     SELECT GET_LOCK(...), ...; SELECT ... of acquisitions
 *
 * The second changes what turned out to be simple:
 *
 *     START TRANSACTION;
 *     SELECT ... of releases FOR UPDATE SKIP LOCKED; DELETE ... the same; SET ...;
 *     INSERT ...;
 *     COMMIT; SELECT ... of acquisitions; DO IF(..., RELEASE_LOCK(...), 0), ...
 *
 * Rows are locked within one packet alone, which ends with COMMIT: a client that stands
 * still between the two keeps nobody from a row. For the same reason the second waits for
 * no row that it deletes; what was locked by somebody else, the SELECT has not seen.
 *
 * Fences are drawn behind all the doorbells, as those of a set. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "store/batch_parts.h"

bool bl_batch_releases(const struct bl_entry *e)
{
	return e->hold.key != NULL;
}

bool bl_batch_acquires(const struct bl_entry *e)
{
	return !bl_batch_releases(e);
}

bool bl_batch_inserts(const struct bl_entry *e)
{
	return bl_batch_acquires(e) && e->rung && !e->there;
}

const struct bl_key *bl_entry_key(const struct bl_entry *e)
{
	return bl_batch_releases(e) ? e->hold.key : e->goal->key;
}

static void add_keys(struct batch *b, bl_batch_filter *which)
{
	struct bl_buf *text = &b->s->text;
	bool first = true;

	for (size_t i = 0; i < b->n; i++) {
		if (!which(b->entries[i]))
			continue;
		bl_sql_add_key(text, first, bl_entry_key(b->entries[i]));
		first = false;
	}
	bl_sql_end_keys(text);
}

static void add_from(struct batch *b, const char *columns, bl_batch_filter *which)
{
	bl_buf_addf(&b->s->text, "SELECT %s FROM %s FORCE INDEX (PRIMARY)", columns,
	            b->s->sql->table);
	add_keys(b, which);
}

/* Locks the rows of the holds that are still there, past those that somebody else has locked. */
static void add_holds(struct batch *b, const char *columns)
{
	struct bl_buf *text = &b->s->text;
	const char *before = " AND (owner, fence) IN ((";

	add_from(b, columns, bl_batch_releases);
	for (size_t i = 0; i < b->n; i++) {
		const struct bl_ref *hold = &b->entries[i]->hold;

		if (!bl_batch_releases(b->entries[i]))
			continue;
		bl_buf_adds(text, before);
		bl_sql_literal(text, "_ascii", hold->owner, strlen(hold->owner));
		bl_buf_addf(text, ",%" PRIu64, hold->fence);
		before = "),(";
	}
	bl_buf_addf(text, ")) LIMIT %zu FOR UPDATE SKIP LOCKED", b->releases);
}

/* The DELETE has the form of the reaper's, for the same reasons (sql_reap.c). It may find a row
 * that the SELECT has not: one whose lock ended in between. */
static void add_deletes(struct batch *b)
{
	add_holds(b, "fence");
	bl_buf_adds(&b->s->text, ";DELETE l FROM (");
	add_holds(b, "biz_id, biz_type");
	bl_buf_addf(&b->s->text,
	            ") AS old STRAIGHT_JOIN %s AS l ON l.biz_id = old.biz_id AND "
	            "l.biz_type = old.biz_type;SET @bizlock_deleted = ROW_COUNT();",
	            b->s->sql->table);
}

static void add_bells(struct batch *b, bl_batch_filter *which, const char *before,
                      const char *after)
{
	const char *comma = "";

	for (size_t i = 0; i < b->n; i++) {
		const struct bl_entry *e = b->entries[i];

		if (!which(e))
			continue;
		bl_buf_addf(&b->s->text, "%s%s'%s'%s", comma, before,
		            bl_batch_releases(e) ? e->bell : e->goal->bell, after);
		comma = ",";
	}
}

size_t bl_batch_bells(const struct batch *b, bl_batch_filter *which, const char *ret[BL_BATCH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		if (which(b->entries[i]))
			ret[n++] = b->entries[i]->bell;
	return n;
}

/* 1: it is ours. Else the connection that has it, below 0. */
static void add_bells_to_ring(struct batch *b)
{
	const char *comma = "";

	for (size_t i = 0; i < b->n; i++) {
		const struct bl_entry *e = b->entries[i];

		if (!bl_batch_acquires(e))
			continue;
		bl_buf_addf(&b->s->text, "%sIF(GET_LOCK('%s',0)=1,1,-IS_USED_LOCK('%s'))", comma,
		            e->goal->bell, e->goal->bell);
		comma = ",";
	}
}

/* Gives doorbells of releases back. */
static void add_rings(struct batch *b, bl_batch_filter *which, const char *only_if)
{
	const char *bells[BL_BATCH_MAX];

	bl_watch_add_rings(&b->s->text, bells, bl_batch_bells(b, which, bells), only_if);
}

/* Only if all rows are gone: a hold whose row is left keeps its doorbell. */
static void add_free_all(struct batch *b)
{
	char condition[64];

	snprintf(condition, sizeof(condition), "@bizlock_deleted = %zu", b->releases);
	bl_buf_adds(&b->s->text, ";");
	add_rings(b, bl_batch_releases, condition);
}

static void add_batch_insert(struct batch *b)
{
	bool first = true;

	bl_sql_begin_set(b->s->sql, &b->s->text);
	for (size_t i = 0; i < b->n; i++) {
		const struct bl_entry *e = b->entries[i];

		if (!bl_batch_inserts(e))
			continue;
		bl_sql_add_to_set(
		        &b->s->text, first,
		        &(struct bl_sql_row){.key = e->goal->key,
		                             .owner = e->claim.owner,
		                             .note = e->claim.note,
		                             .lease_us = (int64_t)e->claim.lease_ms * 1000,
		                             .bell = true});
		first = false;
	}
	bl_sql_end_batch(&b->s->text);
}

void bl_batch_first(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "SELECT ");
	if (b->looks)
		add_bells_to_ring(b);
	else
		add_bells(b, bl_batch_acquires, "GET_LOCK(", ",0)");
	bl_buf_adds(&b->s->text, ";");
	add_from(b, b->looks ? BL_BATCH_LOOK : BL_BATCH_READ, bl_batch_acquires);
}

void bl_batch_second(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	bl_buf_reset(text);
	bl_buf_adds(text, "START TRANSACTION;");
	b->commit = 1;
	if (b->releases > 0) {
		add_deletes(b);
		b->commit += 3;
	}
	if (b->inserts > 0) {
		add_batch_insert(b);
		b->commit++;
	}
	bl_buf_adds(text, "COMMIT");
	if (b->inserts > 0) {
		bl_buf_adds(text, ";");
		add_from(b, BL_BATCH_READ, bl_batch_inserts);
	}
	if (b->releases > 0)
		add_free_all(b);
}

void bl_batch_free(struct batch *b, bl_batch_filter *which)
{
	bl_buf_reset(&b->s->text);
	add_rings(b, which, NULL);
}

void bl_batch_undo(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "ROLLBACK");
	if (b->acquisitions == 0)
		return;
	bl_buf_adds(&b->s->text, ";DO ");
	add_bells(b, bl_batch_acquires, "RELEASE_LOCK(", ")");
}
