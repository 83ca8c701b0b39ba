/* The SQL of a batch. */

/* Two packets. The first rings the doorbells of the acquisitions, and looks which of
 * their keys are free:
 *
 *     SELECT GET_LOCK(...), ...; SELECT ... of acquisitions
 *
 * MariaDB goes without that look, a tenth of a batch, unless somebody wants to know what is in the
 * way. A doorbell that is given tells that the row is free, but where its holder has no doorbell,
 * or has lost it. The INSERT leaves such a row as it is, and those that it leaves are read; and
 * where a transaction has fenced the row, it does not wait, but is refused. MySQL would wait for a
 * second.
 *
 * The second changes what turned out to be simple:
 *
 *     START TRANSACTION;
 *     DELETE ... of releases; SELECT ..., an error unless all were there;
 *     INSERT ...;
 *     COMMIT; SELECT ... of the last acquisition; DO RELEASE_LOCK(...), ...
 *
 * Rows are locked within one packet alone, which ends with COMMIT: a client that stands
 * still between the two keeps nobody from a row. Of the rows that it deletes, none is fenced by
 * a transaction, for only their owner's client could have done so: it knows, and leaves them out.
 *
 * A hold whose row is gone ends the batch before COMMIT, for the DELETE does not tell which one
 * that is. Then each goes alone.
 *
 * Fences are drawn behind all the doorbells, as those of a set. */
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
	return bl_batch_acquires(e) && (e->rung || e->goal->key->shared) && !e->there;
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

/* As bl_many_add_drop(), for its reasons. */
static void add_deletes(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	const char *before = " AND fence + 0 IN (";

	bl_buf_addf(text, "DELETE l FROM %s AS l FORCE INDEX (PRIMARY)",
	            b->shared ? b->s->sql->shared_table : b->s->sql->table);
	add_keys(b, bl_batch_releases);
	bl_many_suffix(text, b->suffix);
	for (size_t i = 0; i < b->n; i++) {
		if (!bl_batch_releases(b->entries[i]))
			continue;
		bl_buf_adds(text, before);
		bl_buf_addu(text, b->entries[i]->hold.fence);
		before = ",";
	}
	bl_buf_addf(text, ");SELECT IF(ROW_COUNT()=%zu,1,EXP(999+ROW_COUNT()));", b->releases);
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

size_t bl_batch_bells(const struct batch *b, const char *ret[BL_BATCH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		if (bl_batch_releases(b->entries[i]))
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

static void add_rings(struct batch *b)
{
	const char *bells[BL_BATCH_MAX];

	bl_watch_add_rings(b->s, bells, bl_batch_bells(b, bells));
}

static void add_batch_insert(struct batch *b)
{
	bool first = true;

	if (!b->asks)
		bl_buf_adds(&b->s->text, "SET STATEMENT innodb_lock_wait_timeout = 0 FOR ");
	bl_sql_begin_set(b->s->sql, b->shared, &b->s->text);
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
		                             .bell = !b->shared});
		first = false;
	}
	bl_sql_end_batch(&b->s->text);
}

void bl_batch_first(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	if (b->looks) {
		bl_buf_adds(&b->s->text, "SELECT ");
		add_bells_to_ring(b);
	} else {
		bl_buf_adds(&b->s->text, "SELECT CONCAT(");
		add_bells(b, bl_batch_acquires, "GET_LOCK(", ",0)<=>1");
		bl_buf_adds(&b->s->text, ")");
	}
	if (!b->asks)
		return;
	bl_buf_adds(&b->s->text, ";");
	add_from(b, b->looks ? BL_BATCH_LOOK : BL_BATCH_READ, bl_batch_acquires);
}

/* The last one of those that are inserted. */
static const struct bl_entry *last_insert(const struct batch *b)
{
	size_t i = b->n;

	while (!bl_batch_inserts(b->entries[i - 1]))
		i--;
	return b->entries[i - 1];
}

void bl_batch_second(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	bl_buf_reset(text);
	bl_buf_adds(text, "START TRANSACTION;");
	b->commit = 1;
	if (b->releases > 0) {
		add_deletes(b);
		b->commit += 2;
	}
	if (b->inserts > 0) {
		add_batch_insert(b);
		b->commit++;
	}
	bl_buf_adds(text, "COMMIT");
	if (b->shared) {
		bl_sharers_end(b);
		return;
	}
	if (b->inserts > 0) {
		bl_buf_addf(text, ";SELECT " BL_BATCH_READ " FROM %s", b->s->sql->table);
		bl_sql_key(text, bl_entry_key(last_insert(b)));
	}
	if (b->releases > 0) {
		bl_buf_adds(text, ";");
		add_rings(b);
	}
}

void bl_batch_read(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	add_from(b, BL_BATCH_READ, bl_batch_inserts);
}

void bl_batch_undo(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "ROLLBACK");
	if (b->acquisitions == 0 || b->shared)
		return;
	bl_buf_adds(&b->s->text, ";DO ");
	add_bells(b, bl_batch_acquires, "RELEASE_LOCK(", ")");
}
