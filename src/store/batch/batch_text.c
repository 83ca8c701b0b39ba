/* The SQL of a batch.
 *
 * Most batches go at once, in one packet:
 *
 *     START TRANSACTION;
 *     DELETE ... of releases;
 *     unless all were there, and all doorbells of acquisitions are given: an error;
 *     INSERT ..., an error unless all are new;
 *     COMMIT; DO RELEASE_LOCK(...), ...
 *
 * MariaDB runs the packet as one compound statement, whose parts have no answers of their own. Each
 * answer costs both sides a system call, and wakes the client: together a quarter of what a batch
 * of four rows costs.
 *
 * After an error, two packets do the simple entries alone. The first takes the doorbells of the
 * acquisitions, and looks which of their keys are free:
 *
 *     SELECT GET_LOCK(...), ...; SELECT ... of acquisitions
 *
 * The second is as above, with the entries that turned out to be simple.
 *
 * If the server gives a doorbell, the key is free, unless its holder has no doorbell, or has lost
 * it. A transaction may have fenced such a holder's row, and the INSERT would wait for the
 * transaction. A compound does not wait for locks: it is refused. All other batches look at the
 * rows first.
 *
 * Rows are locked only within the second packet, until it commits: a client that stands still
 * between the two packets keeps nobody from a row. No transaction has fenced a row that the batch
 * deletes: only the client of the row's owner can do so, and it leaves such rows out of the batch.
 *
 * If the row of a hold is gone, the batch ends before COMMIT, because the DELETE does not tell
 * which row it missed. Then each entry goes alone.
 *
 * Without releases the INSERT commits itself. START TRANSACTION and COMMIT are left out, because
 * their answers cost more than their work. A compound keeps them: they have no answers there, and
 * the compound may have to be undone after its INSERT.
 *
 * Fences are drawn after all doorbells are taken, as for a set. If all rows are new, one INSERT
 * gets its fences in order, at a distance of the session's auto_increment_increment: InnoDB draws
 * the numbers for all rows at once. So no row has to be read. */
#include <stdio.h>
#include <string.h>

#include "store/batch/batch_packet.h"

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
	return bl_batch_acquires(e) && (e->has_bell || e->goal->key->slot > 0) && !e->there;
}

bool bl_batch_won(const struct bl_entry *e)
{
	return bl_batch_acquires(e) && e->done;
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
	bl_buf_addf(&b->s->text, "SELECT %s FROM %s AS l FORCE INDEX (PRIMARY)", columns,
	            b->s->sql->table);
	add_keys(b, which);
}

/* A condition that names the holds: by owners of this client, and by fences, of which no two rows
 * have the same. */
static void add_holds(struct batch *b, bl_batch_filter *which)
{
	struct bl_buf *text = &b->s->text;
	const char *before = " AND fence + 0 IN (";

	bl_many_suffix(text, b->suffix);
	for (size_t i = 0; i < b->n; i++) {
		const struct bl_entry *e = b->entries[i];

		if (!which(e))
			continue;
		bl_buf_adds(text, before);
		bl_buf_addu(text, bl_batch_releases(e) ? e->hold.fence : e->goal->fence);
		before = ",";
	}
	bl_buf_adds(text, ")");
}

/* In the form of bl_many_add_drop(), for the same reasons. */
static void add_deletes(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	bl_buf_addf(text, "DELETE l FROM %s AS l FORCE INDEX (PRIMARY)", b->s->sql->table);
	add_keys(b, bl_batch_releases);
	add_holds(b, bl_batch_releases);
	bl_buf_adds(text, ";");
}

size_t bl_batch_bells(const struct batch *b, const char *ret[BL_BATCH_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		if (bl_batch_releases(b->entries[i]))
			ret[n++] = b->entries[i]->bell;
	return n;
}

/* 1: the doorbell is ours. Else the connection that has it, as a number below 0. */
static void add_bells_to_take(struct batch *b)
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

	bl_sleepers_add_rings(b->s, bells, bl_batch_bells(b, bells));
}

/* A condition: the keys of all acquisitions are free. It takes their doorbells, up to the first
 * that somebody else has. */
static void add_free(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	if (b->shared) {
		bl_sharers_add_free(b);
		return;
	}
	for (size_t i = 0, n = 0; i < b->n; i++)
		if (bl_batch_acquires(b->entries[i]))
			bl_buf_addf(text, "%sGET_LOCK('%s',0)=1", n++ ? " AND " : "",
			            b->entries[i]->goal->bell);
	if (b->compound)
		return;
	bl_buf_adds(text, " AND NOT EXISTS(");
	add_from(b, "1", bl_batch_acquires);
	bl_buf_adds(text, ")");
}

/* Answers with the step of fences; or with an error, unless the rows of all releases were there and
 * (at once) the keys of all acquisitions are free. A compound uses a SELECT, too: an IF would lock
 * the rows that it reads, and so wait for them. INTO: the SELECT has no answer. */
static void add_guard(struct batch *b)
{
	bool asks = b->at_once && b->acquisitions > 0;

	if (b->releases == 0 && !asks)
		return;
	bl_buf_adds(&b->s->text, "SELECT IF(");
	if (b->releases > 0)
		bl_buf_addf(&b->s->text, "ROW_COUNT()=%zu", b->releases);
	if (b->releases > 0 && asks)
		bl_buf_adds(&b->s->text, " AND ");
	if (asks)
		add_free(b);
	bl_buf_adds(&b->s->text, "," BL_BATCH_STEP ",EXP(999+ROW_COUNT()))");
	bl_buf_adds(&b->s->text, b->compound ? " INTO @bizlock_fits;" : ";");
	b->commit++;
}

static const struct bl_entry *last_insert(const struct batch *b)
{
	size_t i = b->n;

	while (!bl_batch_inserts(b->entries[i - 1]))
		i--;
	return b->entries[i - 1];
}

static struct bl_sql_row row_of(const struct batch *b, const struct bl_entry *e)
{
	return (struct bl_sql_row){.key = e->goal->key,
	                           .owner = e->claim.owner,
	                           .note = e->claim.note,
	                           .lease_us = (int64_t)e->claim.lease_ms * 1000,
	                           .bell = !b->shared};
}

/* A compound computes the times once, for the lease of the last row. */
static void add_batch_insert(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	int64_t lease_us = row_of(b, last_insert(b)).lease_us;
	bool first = true;

	if (b->compound) {
		bl_sql_set_times(text, lease_us);
		bl_buf_adds(text, "SET STATEMENT innodb_lock_wait_timeout = 0 FOR ");
	}
	bl_sql_begin_set(b->s->sql, text);
	for (size_t i = 0; i < b->n; i++) {
		struct bl_sql_row row;

		if (!bl_batch_inserts(b->entries[i]))
			continue;
		row = row_of(b, b->entries[i]);
		row.now_is_set = b->compound;
		row.end_is_set = b->compound && row.lease_us == lease_us;
		bl_sql_add_to_set(text, first, &row);
		first = false;
	}
	bl_sql_end_batch(text);
}

void bl_batch_first(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "SELECT " BL_BATCH_STEP ",");
	add_bells_to_take(b);
	bl_buf_adds(&b->s->text, ";");
	add_from(b, BL_BATCH_LOOK, bl_batch_acquires);
}

static void add_changes(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	b->single = b->releases == 0 && !b->compound;
	b->commit = 0;
	if (!b->single) {
		bl_buf_adds(text, "START TRANSACTION;");
		b->commit++;
	}
	if (b->releases > 0) {
		add_deletes(b);
		b->commit++;
	}
	add_guard(b);
	b->insert = b->commit;
	if (b->inserts > 0)
		add_batch_insert(b);
	if (b->single)
		return;
	if (b->inserts > 0) {
		bl_buf_adds(text, ";");
		b->commit++;
	}
	bl_buf_adds(text, "COMMIT");
}

/* What follows COMMIT: the fences of a compound, and the doorbells of releases. */
static void add_rest(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	if (b->shared) {
		bl_sharers_end(b);
		return;
	}
	if (b->inserts > 0 && b->compound)
		bl_buf_adds(text, ";SELECT " BL_BATCH_FENCES);
	if (b->releases > 0) {
		bl_buf_adds(text, ";");
		add_rings(b);
	}
}

void bl_batch_second(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	bl_buf_reset(text);
	if (b->compound)
		bl_buf_adds(text, "BEGIN NOT ATOMIC ");
	add_changes(b);
	add_rest(b);
	b->looks = b->inserts > 0 && (b->shared ? !bl_sql_in_cluster(b->s->sql) : b->compound);
	b->answers = bl_sql_statements(text->data, text->len);
	b->needed = b->commit + 1 + b->looks;
	if (!b->compound)
		return;
	bl_buf_adds(text, ";END");
	b->commit = 0;
	b->answers = 1 + b->looks;
	b->needed = 1;
}

void bl_batch_read(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	add_from(b, BL_BATCH_READ, bl_batch_inserts);
}

void bl_batch_again(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	bool first = true;

	bl_buf_reset(text);
	bl_sql_begin_set(b->s->sql, text);
	for (size_t i = 0; i < b->n; i++) {
		if (!bl_batch_won(b->entries[i]))
			continue;
		bl_sql_add_free_row(text, first, b->entries[i]->goal->key);
		first = false;
	}
	bl_sql_begin_again(text);
	bl_buf_adds(text, "TRUE");
	add_holds(b, bl_batch_won);
	bl_sql_end_again(text);
	add_from(b, BL_BATCH_READ, bl_batch_won);
}

void bl_batch_undo(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "ROLLBACK");
	if (b->acquisitions == 0 || b->shared)
		return;
	for (size_t i = 0, n = 0; i < b->n; i++)
		if (bl_batch_acquires(b->entries[i]))
			bl_buf_addf(&b->s->text, "%s RELEASE_LOCK('%s')", n++ ? "," : ";DO",
			            b->entries[i]->goal->bell);
}
