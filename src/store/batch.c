/* Two packets. The first rings the doorbells of the acquisitions, locks the rows of the
 * releases, and looks which keys of the acquisitions are free:
 *
 *     START TRANSACTION; SELECT GET_LOCK(...), ...;
 *     SELECT ... of releases FOR UPDATE SKIP LOCKED; SELECT ... of acquisitions
 *
 * The second changes what turned out to be simple:
 *
 *     DELETE ...; INSERT ...; INSERT ... again; COMMIT;
 *     SELECT ... of acquisitions; DO RELEASE_LOCK(...), ...
 *
 * The second INSERT draws the fences anew, now that the rows are locked: see set.c. */
#include "store/batch.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct batch {
	struct bl_session *s;
	struct bl_entry **entries;
	size_t n;
};

static bool releases(const struct bl_entry *e)
{
	return e->hold.key != NULL;
}

static bool acquires(const struct bl_entry *e)
{
	return !releases(e);
}

/* An acquisition of a key that is free. */
static bool inserts(const struct bl_entry *e)
{
	return acquires(e) && e->rung && !e->there;
}

static bool deletes(const struct bl_entry *e)
{
	return releases(e) && e->there;
}

typedef bool filter(const struct bl_entry *e);

static const struct bl_key *key_of(const struct bl_entry *e)
{
	return releases(e) ? e->hold.key : e->claim.key;
}

static bool any(const struct batch *b, filter *which)
{
	for (size_t i = 0; i < b->n; i++)
		if (which(b->entries[i]))
			return true;
	return false;
}

/* ---- in the order of the primary key -------------------------------------------------- */

static int order(const struct bl_key *key, const char *id, const char *type)
{
	int by_id = strcmp(key->id, id);

	return by_id ? by_id : strcmp(key->type, type);
}

static int by_key(const void *a, const void *b)
{
	const struct bl_key *y = key_of(*(struct bl_entry *const *)b);

	return order(key_of(*(struct bl_entry *const *)a), y->id, y->type);
}

static struct bl_entry *find(const struct batch *b, const char *id, const char *type)
{
	size_t low = 0, high = b->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int sign = order(key_of(b->entries[middle]), id, type);

		if (sign == 0)
			return b->entries[middle];
		if (sign < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- texts ------------------------------------------------------------------------------ */

static void add_where(struct batch *b, filter *which)
{
	struct bl_buf *text = &b->s->text;
	const char *before = " WHERE (biz_id, biz_type) IN ((";

	for (size_t i = 0; i < b->n; i++) {
		const struct bl_key *key = key_of(b->entries[i]);

		if (!which(b->entries[i]))
			continue;
		bl_buf_adds(text, before);
		bl_sql_literal(text, "_utf8mb4", key->id, key->id_len);
		bl_buf_adds(text, ",");
		bl_sql_literal(text, "_utf8mb4", key->type, key->type_len);
		before = "),(";
	}
	bl_buf_adds(text, "))");
}

static void add_select(struct batch *b, filter *which)
{
	bl_buf_addf(&b->s->text,
	            "SELECT biz_id, biz_type, owner, fence FROM %s FORCE INDEX (PRIMARY)",
	            b->s->sql->table);
	add_where(b, which);
}

static void add_bells(struct batch *b, const char *before, const char *after, filter *which)
{
	const char *begin = which == acquires ? ";SELECT " : ";DO ";

	for (size_t i = 0; i < b->n; i++) {
		const struct bl_entry *e = b->entries[i];

		if (!which(e))
			continue;
		bl_buf_adds(&b->s->text, begin);
		bl_buf_adds(&b->s->text, before);
		bl_buf_adds(&b->s->text, releases(e) ? e->bell : e->claim.bell);
		bl_buf_adds(&b->s->text, after);
		begin = ",";
	}
}

/* One by one: for several the optimizer may prefer to read, and lock, a small table. */
static void add_deletes(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		if (!deletes(b->entries[i]))
			continue;
		bl_buf_addf(&b->s->text, "DELETE FROM %s", b->s->sql->table);
		bl_sql_key(&b->s->text, b->entries[i]->hold.key);
		bl_buf_adds(&b->s->text, ";");
	}
}

static void add_insert(struct batch *b, bool again)
{
	bool first = true;

	bl_sql_begin_set(b->s->sql, &b->s->text);
	for (size_t i = 0; i < b->n; i++) {
		const struct bl_claim *claim = &b->entries[i]->claim;
		struct bl_sql_row row = {.key = claim->key,
		                         .owner = claim->owner,
		                         .note = claim->note,
		                         .lease_us = (int64_t)claim->lease_ms * 1000,
		                         .bell = true};

		if (!inserts(b->entries[i]))
			continue;
		bl_sql_add_to_set(&b->s->text, first, &row);
		first = false;
	}
	bl_sql_end_batch(&b->s->text, again);
}

static void make_first(struct batch *b)
{
	bl_buf_reset(&b->s->text);
	bl_buf_adds(&b->s->text, "START TRANSACTION");
	add_bells(b, "GET_LOCK('", "',0)", acquires);
	if (any(b, releases)) {
		bl_buf_adds(&b->s->text, ";");
		add_select(b, releases);
		bl_buf_adds(&b->s->text, " FOR UPDATE SKIP LOCKED");
	}
	if (any(b, acquires)) {
		bl_buf_adds(&b->s->text, ";");
		add_select(b, acquires);
	}
}

static void make_second(struct batch *b)
{
	struct bl_buf *text = &b->s->text;

	bl_buf_reset(text);
	add_deletes(b);
	if (any(b, inserts)) {
		add_insert(b, false);
		add_insert(b, true);
	}
	bl_buf_adds(text, "COMMIT");
	if (any(b, inserts)) {
		bl_buf_adds(text, ";");
		add_select(b, inserts);
	}
	add_bells(b, "RELEASE_LOCK('", "')", deletes);
}

/* ---- answers ------------------------------------------------------------------------------ */

static bool is_owner(const char *name, const char *owner)
{
	return owner && strcmp(name, owner) == 0;
}

/* biz_id, biz_type, owner, fence. */
static void read_row(const struct batch *b, MYSQL_ROW row, bool first)
{
	struct bl_entry *e = row[0] && row[1] ? find(b, row[0], row[1]) : NULL;
	uint64_t fence = row[3] ? strtoull(row[3], NULL, 10) : 0;

	if (!e)
		return;
	if (releases(e)) {
		e->there = is_owner(e->hold.owner, row[2]) && fence == e->hold.fence;
	} else if (first) {
		e->there = true;
	} else if (is_owner(e->claim.owner, row[2])) {
		e->done = true;
		e->fence = fence;
	}
}

static void read_bells(const struct batch *b, MYSQL_RES *rows)
{
	MYSQL_ROW row = mysql_fetch_row(rows);
	unsigned columns = mysql_num_fields(rows), at = 0;

	for (size_t i = 0; row && i < b->n; i++)
		if (acquires(b->entries[i]) && at < columns) {
			b->entries[i]->rung = row[at] && strcmp(row[at], "1") == 0;
			at++;
		}
}

static void read_rows(const struct batch *b, MYSQL_RES *rows, bool first)
{
	MYSQL_ROW row;

	while (mysql_num_fields(rows) == 4 && (row = mysql_fetch_row(rows)) != NULL)
		read_row(b, row, first);
}

static void read_first(void *arg, unsigned statement, MYSQL_RES *rows)
{
	const struct batch *b = arg;

	if (rows && statement == 1 && any(b, acquires))
		read_bells(b, rows);
	else if (rows)
		read_rows(b, rows, true);
}

static void read_second(void *arg, unsigned statement, MYSQL_RES *rows)
{
	(void)statement;
	if (rows)
		read_rows(arg, rows, false);
}

static void begin(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		e->rung = e->there = e->done = false;
	}
	qsort(b->entries, b->n, sizeof(*b->entries), by_key);
}

static void end(struct batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		b->entries[i]->done |= deletes(b->entries[i]);
}

int bl_batch_run(struct bl_session *s, struct bl_entry **entries, size_t n, bl_time *ret_sent,
                 struct bl_err *err)
{
	struct batch b = {.s = s, .entries = entries, .n = n};
	int rc;

	*ret_sent = 0;
	begin(&b);
	make_first(&b);
	rc = bl_session_each(s, UINT_MAX, read_first, &b, err);
	if (rc == BIZLOCK_OK) {
		make_second(&b);
		*ret_sent = bl_now();
		rc = bl_session_each(s, UINT_MAX, read_second, &b, err);
	}
	if (rc == BIZLOCK_OK)
		end(&b);
	else
		bl_session_leave(s);
	return rc;
}
