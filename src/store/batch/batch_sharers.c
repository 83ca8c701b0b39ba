/* Batches of sharers without a limit. Many entries may share one key, and none takes its doorbell.
 * So the server is asked, once for each key, whether somebody has the doorbell or is in slot 0. In
 * a batch at once the question is a condition. Else it is the first of two packets,
 *
 *     SELECT IS_USED_LOCK(...), ...; SELECT ... of slots 0
 *
 * and entries that would have to wait are left out. A packet between the two makes slots 0 that are
 * missing. All slots 0 are looked at again once the rows are committed (sharers.h says why):
 *
 *     ...; commit; SELECT ... of slots 0 and the last row; DO IS_USED_LOCK(...)/0, ... of releases
 *
 * A cluster's member looks only after it has caught up with the others. */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/batch/batch_packet.h"

static bool has_name(const struct bl_entry *e, const char *id, const char *type)
{
	const struct bl_key *key = bl_entry_key(e);

	return strcmp(key->id, id) == 0 && strcmp(key->type, type) == 0;
}

/* The next entry from *at on that `which` accepts and whose key differs from that of the entry
 * before *at. */
static const struct bl_entry *next_key(const struct batch *b, bl_batch_filter *which, size_t *at)
{
	const struct bl_key *last = *at ? bl_entry_key(b->entries[*at - 1]) : NULL;

	while (*at < b->n) {
		const struct bl_entry *e = b->entries[(*at)++];

		if (which(e) && !(last && has_name(e, last->id, last->type)))
			return e;
	}
	return NULL;
}

/* ---- asking -------------------------------------------------------------------------------- */

static void add_slots_0(struct batch *b, bl_batch_filter *which)
{
	const struct bl_entry *e;
	bool first = true;

	for (size_t at = 0; (e = next_key(b, which, &at)) != NULL; first = false) {
		struct bl_key key = *bl_entry_key(e);

		key.slot = 0;
		bl_sql_add_key(&b->s->text, first, &key);
	}
}

static void add_rows_0(struct batch *b, const char *columns)
{
	bl_buf_addf(&b->s->text, "SELECT %s FROM %s FORCE INDEX (PRIMARY)", columns,
	            b->s->sql->table);
	add_slots_0(b, bl_batch_acquires);
	bl_sql_end_keys(&b->s->text);
}

/* Each slot 0 must be the header that was seen before (see sharers.h); its fence identifies it. */
void bl_sharers_add_free(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	const char *before = "COALESCE(";
	const struct bl_entry *e;
	unsigned keys = 0;

	for (size_t at = 0; (e = next_key(b, bl_batch_acquires, &at)) != NULL; before = ",") {
		bl_buf_addf(text, "%sIS_USED_LOCK('%s')", before, e->goal->bell);
		keys++;
	}
	bl_buf_adds(text, ") IS NULL AND (");
	add_rows_0(b, "COUNT(*)");
	bl_buf_adds(text, " AND NOT " TAKEN " AND fence + 0 IN (0");
	for (size_t at = 0; (e = next_key(b, bl_batch_acquires, &at)) != NULL;)
		bl_buf_addf(text, ",%" PRIu64, e->before);
	bl_buf_addf(text, "))=%u", keys);
}

#define ROW_0 "biz_id, biz_type, " TAKEN ", fence"

void bl_sharers_ask(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	const struct bl_entry *e;

	bl_buf_reset(text);
	bl_buf_adds(text, "SELECT " BL_BATCH_STEP ",CONCAT(''");
	for (size_t at = 0; (e = next_key(b, bl_batch_acquires, &at)) != NULL;)
		bl_buf_addf(text, ",IS_USED_LOCK('%s') IS NOT NULL", e->goal->bell);
	bl_buf_adds(text, ");");
	add_rows_0(b, ROW_0);
	for (size_t i = 0; i < b->n; i++)
		b->entries[i]->before = 0;
}

static bool lacks_header(const struct bl_entry *e)
{
	return bl_batch_acquires(e) && !e->there && e->before == 0;
}

bool bl_sharers_make_headers(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	const struct bl_entry *e;
	bool first = true;

	bl_buf_reset(text);
	for (size_t at = 0; (e = next_key(b, lacks_header, &at)) != NULL; first = false) {
		struct bl_key key = *e->goal->key;

		key.slot = 0;
		if (first)
			bl_sql_begin_set(b->s->sql, text);
		bl_sql_add_free_row(text, first, &key);
	}
	if (first)
		return false;
	bl_buf_adds(text, " ON DUPLICATE KEY UPDATE fence = fence;");
	add_rows_0(b, ROW_0);
	return true;
}

static void leave_out(const struct batch *b, const char *id, const char *type)
{
	for (size_t i = 0; i < b->n; i++)
		b->entries[i]->there |= has_name(b->entries[i], id, type);
}

/* One digit for each key, '0': nobody has the doorbell. */
static void read_bells(struct batch *b, struct bl_rows *rows)
{
	MYSQL_ROW row = rows->columns == 2 ? bl_rows_next(rows) : NULL;
	const char *digits = row && row[1] ? row[1] : "";
	const struct bl_entry *e;

	if (row)
		bl_batch_read_step(b, row[0]);
	for (size_t at = 0; (e = next_key(b, bl_batch_acquires, &at)) != NULL;) {
		char digit = *digits ? *digits++ : '1';

		if (digit != '0')
			leave_out(b, e->goal->key->id, e->goal->key->type);
	}
}

static void read_row_0(const struct batch *b, MYSQL_ROW row)
{
	for (size_t i = 0; i < b->n; i++)
		if (bl_batch_acquires(b->entries[i]) && has_name(b->entries[i], row[0], row[1]))
			b->entries[i]->before = bl_rows_u64(row[3]);
	if (!row[2] || row[2][0] != '0')
		leave_out(b, row[0], row[1]);
}

void bl_sharers_read_ask(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct batch *b = arg;
	MYSQL_ROW row;

	if (rows && statement == 0)
		read_bells(b, rows);
	else
		while (rows && rows->columns == 4 && (row = bl_rows_next(rows)) != NULL)
			if (row[0] && row[1] && row[3])
				read_row_0(b, row);
}

/* ---- the look behind the rows -------------------------------------------------------------- */

enum { LOOK_COLUMNS = 3 + BL_ROW_COLUMNS };

/* A look at slots 0, and at the last of the batch's rows or (all) at all of them. */
static void add_look(struct batch *b, bool all)
{
	struct bl_buf *text = &b->s->text;
	bool last = true;

	bl_buf_adds(text, "SELECT biz_id, biz_type, slot, " ROW_READ);
	if (!all && b->compound)
		bl_buf_adds(text, "," BL_BATCH_FENCES);
	bl_buf_addf(text, " FROM %s AS l FORCE INDEX (PRIMARY)", b->s->sql->table);
	add_slots_0(b, bl_batch_inserts);
	for (size_t i = b->n; i-- > 0;) {
		const struct bl_entry *e = b->entries[i];

		if (!bl_batch_inserts(e))
			continue;
		*e->seen = (struct bl_shared_seen){.slot = e->goal->key->slot, .before = e->before};
		if (all || last)
			bl_sql_add_key(text, false, e->goal->key);
		last = false;
	}
	bl_sql_end_keys(text);
}

static void note_slot_0(const struct bl_row *row, struct bl_shared_seen *seen)
{
	seen->header = row->fence;
	seen->exclusively = row->left_us > 0;
	seen->uncleared = !seen->exclusively && row->owner[0];
	if (seen->exclusively)
		seen->in_way = *row;
}

static void read_row(const struct batch *b, MYSQL_ROW at)
{
	uint32_t slot = bl_rows_u32(at[2]);
	struct bl_row row;

	bl_row_read(at + 3, &row);
	for (size_t i = 0; i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		if (!bl_batch_inserts(e) || !has_name(e, at[0], at[1]))
			continue;
		if (slot == 0) {
			note_slot_0(&row, e->seen);
		} else if (slot == e->seen->slot && strcmp(row.owner, e->claim.owner) == 0) {
			e->seen->mine = true;
			e->seen->fence = row.fence;
		}
	}
}

static void read_look(struct batch *b, struct bl_rows *rows, bool with_fences)
{
	unsigned columns = LOOK_COLUMNS + (with_fences ? BL_BATCH_FENCES_COLUMNS : 0);
	MYSQL_ROW row;

	while (rows->columns == columns && (row = bl_rows_next(rows)) != NULL) {
		if (row[0] && row[1])
			read_row(b, row);
		if (with_fences)
			bl_batch_read_fences(b, row + LOOK_COLUMNS);
	}
}

void bl_sharers_read(struct batch *b, struct bl_rows *rows)
{
	read_look(b, rows, b->compound);
}

static void read_all(void *arg, unsigned statement, struct bl_rows *rows)
{
	(void)statement;
	if (rows)
		read_look(arg, rows, false);
}

static int look_at_all(struct batch *b, struct bl_err *err)
{
	int rc = bl_lock_catch_up(b->s, NULL, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_reset(&b->s->text);
	add_look(b, true);
	return bl_session_each(b->s, UINT_MAX, read_all, b, err);
}

/* Is the last row's fence as computed? The look reads that row also because the fences of a
 * compound come as columns of a row. */
static bool are_in_order(const struct batch *b)
{
	const struct bl_entry *last = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (bl_batch_inserts(b->entries[i]))
			last = b->entries[i];
	return b->in_order && last && last->seen->mine &&
	       last->seen->fence == b->first + (b->inserts - 1) * b->step;
}

int bl_sharers_tell(struct batch *b, struct bl_err *err)
{
	bool in_order = !bl_sql_in_cluster(b->s->sql) && are_in_order(b);
	int rc = in_order ? BIZLOCK_OK : look_at_all(b, err);
	uint64_t fence = b->first;

	for (size_t i = 0; rc == BIZLOCK_OK && i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		if (!bl_batch_inserts(e))
			continue;
		if (in_order) {
			e->seen->mine = true;
			e->seen->fence = fence;
			fence += b->step;
		}
		e->done = e->seen->mine;
	}
	return rc;
}

/* ---- those that leave ---------------------------------------------------------------------- */

void bl_sharers_end(struct batch *b)
{
	struct bl_buf *text = &b->s->text;
	const char *before = ";DO IS_USED_LOCK";
	const struct bl_entry *e;

	if (b->inserts > 0 && !bl_sql_in_cluster(b->s->sql)) {
		bl_buf_adds(text, ";");
		add_look(b, false);
	}
	for (size_t at = 0; (e = next_key(b, bl_batch_releases, &at)) != NULL;) {
		bl_sleepers_add_name(text, before, BL_FIRST_NAME, e->bell, "");
		bl_buf_adds(text, "/0");
		before = ",IS_USED_LOCK";
	}
}

void bl_sharers_wake(struct batch *b)
{
	const char *bells[BL_BATCH_MAX];
	const struct bl_entry *e;
	size_t n = 0;

	for (size_t at = 0; (e = next_key(b, bl_batch_releases, &at)) != NULL;)
		bells[n++] = e->bell;
	bl_sleepers_wake(b->s, bells, n, BL_SLEEPERS_FIRST);
	b->s->woke = false;
}
