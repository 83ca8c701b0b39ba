/* Runs a batch; its SQL is in batch_text.c. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/batch/batch_packet.h"
#include "store/session/errclass.h"

static size_t count_entries(const struct batch *b, bl_batch_filter *which)
{
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += which(b->entries[i]);
	return n;
}

/* ---- in the order of the primary key -------------------------------------------------- */

static int order(const struct bl_key *key, const char *id, const char *type)
{
	int by_id = strcmp(key->id, id);

	return by_id ? by_id : strcmp(key->type, type);
}

static int by_key(const void *a, const void *b)
{
	const struct bl_key *x = bl_entry_key(*(struct bl_entry *const *)a);
	const struct bl_key *y = bl_entry_key(*(struct bl_entry *const *)b);
	int by_name = order(x, y->id, y->type);

	return by_name ? by_name : (x->slot > y->slot) - (x->slot < y->slot);
}

static struct bl_entry *find_entry(const struct batch *b, const char *id, const char *type)
{
	size_t low = 0, high = b->n;

	while (low < high) {
		size_t middle = (low + high) / 2;
		int sign = order(bl_entry_key(b->entries[middle]), id, type);

		if (sign == 0)
			return b->entries[middle];
		if (sign < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* ---- answers ------------------------------------------------------------------------------ */

static bool is_owner(const char *name, const char *owner)
{
	return owner && strcmp(name, owner) == 0;
}

/* Keeps bell_by, which read_bell() has set. */
static void read_row(MYSQL_ROW row, struct bl_row *ret)
{
	uint64_t bell_by = ret->bell_by;

	bl_row_read(row + 2, ret);
	ret->bell_by = bell_by;
}

static void note_insert(struct bl_entry *e, uint64_t fence)
{
	e->done = true;
	e->goal->fence = fence;
	e->goal->took_over = false;
}

/* A row of BL_BATCH_LOOK (first), or of BL_BATCH_READ after the INSERT. */
static void read_entry(const struct batch *b, MYSQL_ROW row, bool first)
{
	struct bl_entry *e = row[0] && row[1] ? find_entry(b, row[0], row[1]) : NULL;

	if (!e || bl_batch_releases(e))
		return;
	if (first) {
		e->there = true;
		if (e->row)
			read_row(row, e->row);
	} else if (is_owner(e->claim.owner, row[3])) {
		note_insert(e, bl_rows_u64(row[2]));
	}
}

static void read_entries(const struct batch *b, struct bl_rows *rows, bool first)
{
	unsigned columns = first ? BL_BATCH_LOOK_COLUMNS : BL_BATCH_COLUMNS;
	MYSQL_ROW row;

	while (rows->columns == columns && (row = bl_rows_next(rows)) != NULL)
		read_entry(b, row, first);
}

static void read_bell(struct bl_entry *e, const char *field)
{
	int64_t by = bl_rows_number(field);

	e->has_bell = by == 1;
	if (e->row)
		*e->row = (struct bl_row){.bell_by = by < 0 ? (uint64_t)-by : 0};
}

static void read_bells(struct batch *b, struct bl_rows *rows)
{
	MYSQL_ROW row = bl_rows_next(rows);
	unsigned columns = rows->columns, at = 1;

	if (row)
		bl_batch_read_step(b, row[0]);
	for (size_t i = 0; row && i < b->n; i++)
		if (bl_batch_acquires(b->entries[i]) && at < columns) {
			read_bell(b->entries[i], row[at++]);
		}
}

static void read_first(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct batch *b = arg;

	if (rows && statement == 0)
		read_bells(b, rows);
	else if (rows)
		read_entries(b, rows, true);
}

/* The largest value of auto_increment_increment. */
#define STEP_MAX 65535

void bl_batch_read_step(struct batch *b, const char *field)
{
	uint64_t step = bl_rows_u64(field);

	b->step = step <= STEP_MAX ? step : 0;
}

/* All rows were inserted: anything else is an error. */
static void note_first(struct batch *b, uint64_t first)
{
	b->first = first;
	b->in_order = first > 0 && b->step > 0;
}

void bl_batch_read_fences(struct batch *b, MYSQL_ROW fields)
{
	bl_batch_read_step(b, fields[1]);
	note_first(b, bl_rows_u64(fields[0]));
}

static void read_fences(struct batch *b, struct bl_rows *rows)
{
	MYSQL_ROW row = rows->columns == BL_BATCH_FENCES_COLUMNS ? bl_rows_next(rows) : NULL;

	if (row)
		bl_batch_read_fences(b, row);
}

static void read_guard(struct batch *b, struct bl_rows *rows)
{
	MYSQL_ROW row = bl_rows_next(rows);

	if (row)
		bl_batch_read_step(b, row[0]);
}

static void read_second(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct batch *b = arg;

	b->answered = statement + 1;
	if (rows && b->answered <= b->commit)
		read_guard(b, rows);
	else if (rows && b->shared)
		bl_sharers_read(b, rows);
	else if (rows)
		read_fences(b, rows);
	else if (b->inserts > 0 && !b->compound && statement == b->insert)
		note_first(b, mysql_insert_id(b->s->mysql));
}

static void read_back(void *arg, unsigned statement, struct bl_rows *rows)
{
	(void)statement;
	if (rows)
		read_entries(arg, rows, false);
}

static void read_again(void *arg, unsigned statement, struct bl_rows *rows)
{
	struct batch *b = arg;
	MYSQL_ROW row;

	(void)statement;
	while (rows && rows->columns == BL_BATCH_COLUMNS && (row = bl_rows_next(rows)) != NULL) {
		struct bl_entry *e = row[0] && row[1] ? find_entry(b, row[0], row[1]) : NULL;

		if (!e || !row[2] || !bl_batch_won(e) || !is_owner(e->claim.owner, row[3]))
			continue;
		e->goal->fence = bl_rows_u64(row[2]);
		e->ordered = true;
	}
}

/* ---- in the end ----------------------------------------------------------------------- */

/* Runs the text. If it fails the session ends, because it may still have doorbells that nobody
 * knows of. */
static void batch_tidy(struct batch *b)
{
	struct bl_session *s = b->s;
	struct bl_err ignored;

	if (bl_session_run_text(s, NULL, &ignored))
		bl_session_leave(s);
}

/* A statement was refused. The transaction is rolled back, and the doorbells that this batch has
 * taken are freed. The session keeps its others: they belong to holds. */
static void batch_undo(struct batch *b)
{
	if (b->s->gone)
		return;
	bl_batch_undo(b);
	batch_tidy(b);
}

static int run_first(struct batch *b, struct bl_err *err)
{
	int rc;

	if (b->acquisitions == 0)
		return BIZLOCK_OK;
	if (b->shared)
		bl_sharers_ask(b);
	else
		bl_batch_first(b);
	rc = bl_session_each(b->s, UINT_MAX, b->shared ? bl_sharers_read_ask : read_first, b, err);
	if (rc == BIZLOCK_OK && b->shared && bl_sharers_make_headers(b))
		rc = bl_session_each(b->s, UINT_MAX, bl_sharers_read_ask, b, err);
	if (rc != BIZLOCK_OK)
		batch_undo(b);
	return rc;
}

/* Did a compound end before COMMIT? A session that is not gone can tell. */
static bool is_open(struct batch *b)
{
	static const char question[] = "SELECT @@in_transaction";
	struct bl_err ignored;
	int64_t open = 0;

	return !b->s->gone &&
	       bl_session_ask(b->s, question, strlen(question), NULL, &open, &ignored) ==
	               BIZLOCK_OK &&
	       open == 1;
}

/* Was COMMIT not reached, or was it refused with a rollback? */
static bool is_refused(struct batch *b, const struct bl_err *err)
{
	if (b->answered != b->commit)
		return b->answered < b->commit;
	if (b->compound) /* the sharers' look after COMMIT gives some errors, too */
		return bl_before_commit(err) || is_open(b);
	if (b->single) /* as for one row: an error that leaves a doubt ends the session */
		return true;
	return bl_classify(err->native) == BL_CLASS_RETRY;
}

static void batch_fail(struct batch *b, const struct bl_err *err)
{
	bool committed = b->answered > b->commit && !b->s->in_group; /* see bl_session_vouch() */

	if (is_refused(b, err))
		batch_undo(b);
	else
		bl_session_leave(b->s);
	for (size_t i = 0; i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		e->done = committed && bl_batch_releases(e);
		e->maybe = b->s->gone && !e->done && (bl_batch_inserts(e) || bl_batch_releases(e));
	}
}

/* After COMMIT. */
static int tell_inserts(struct batch *b, struct bl_err *err)
{
	uint64_t fence = b->first;

	if (b->shared)
		return bl_sharers_tell(b, err);
	if (!b->in_order) {
		bl_batch_read(b);
		return bl_session_each(b->s, UINT_MAX, read_back, b, err);
	}
	for (size_t i = 0; i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		if (!bl_batch_inserts(e))
			continue;
		note_insert(e, fence);
		fence += b->step;
	}
	return BIZLOCK_OK;
}

static void tell_releases(struct batch *b)
{
	const char *bells[BL_BATCH_MAX];

	for (size_t i = 0; i < b->n; i++)
		b->entries[i]->done |= bl_batch_releases(b->entries[i]);
	if (b->s->gone || b->releases == 0)
		return;
	if (b->shared)
		bl_sharers_wake(b);
	else
		bl_sleepers_wake(b->s, bells, bl_batch_bells(b, bells), BL_SLEEPERS_WATCHING);
}

/* The packet that changes the rows. */
static int run_second(struct batch *b, bl_time *ret_sent, struct bl_err *err)
{
	int rc;

	b->inserts = count_entries(b, bl_batch_inserts);
	if (b->inserts + b->releases == 0)
		return BIZLOCK_OK;
	bl_batch_second(b);
	if (b->s->text.failed) {
		batch_undo(b);
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	}
	*ret_sent = bl_now();
	rc = bl_session_each_of(b->s, b->answers, b->needed, read_second, b, err);
	if (rc == BIZLOCK_OK)
		tell_releases(b);
	if (rc == BIZLOCK_OK && b->inserts > 0)
		rc = tell_inserts(b, err);
	if (rc != BIZLOCK_OK)
		batch_fail(b, err);
	return rc;
}

/* A batch at once assumes that all acquisitions are simple; the server refuses it if not. */
static void batch_begin(struct batch *b)
{
	b->commit = b->answered = 0;
	b->first = b->step = 0;
	b->in_order = false;
	for (size_t i = 0; i < b->n; i++) {
		struct bl_entry *e = b->entries[i];

		e->there = e->done = e->maybe = e->ordered = false;
		e->has_bell = b->at_once && bl_batch_acquires(e) && !b->shared;
	}
	b->compound = b->at_once && b->s->sql->compound;
}

static int batch_try(struct batch *b, bl_time *ret_sent, struct bl_err *err)
{
	int rc;

	batch_begin(b);
	rc = b->at_once ? BIZLOCK_OK : run_first(b, err);
	return rc == BIZLOCK_OK ? run_second(b, ret_sent, err) : rc;
}

/* Where keys are contended, every second batch at once would fail. After a failure this many
 * batches with acquisitions go in two packets. */
#define BATCHES_IN_TWO 15

int bl_batch_run(struct bl_session *s, struct bl_entry **entries, size_t n, const char *suffix,
                 bl_time *ret_sent, struct bl_err *err)
{
	struct batch b = {.s = s,
	                  .entries = entries,
	                  .n = n,
	                  .suffix = suffix,
	                  .shared = bl_entry_key(entries[0])->slot > 0};
	int rc;

	*ret_sent = 0;
	qsort(b.entries, b.n, sizeof(*b.entries), by_key);
	b.acquisitions = count_entries(&b, bl_batch_acquires);
	b.releases = n - b.acquisitions;
	b.at_once = b.acquisitions == 0 || s->batches_in_two == 0;
	s->batches_in_two -= !b.at_once;
	rc = batch_try(&b, ret_sent, err);
	if (rc == BIZLOCK_OK || s->gone || !b.at_once || b.acquisitions == 0)
		return rc;
	s->batches_in_two = BATCHES_IN_TWO;
	b.at_once = false;
	return batch_try(&b, ret_sent, err);
}

void bl_batch_draw_again(struct bl_session *s, struct bl_entry **entries, size_t n,
                         const char *suffix)
{
	struct batch b = {.s = s, .entries = entries, .n = n, .suffix = suffix};
	struct bl_err ignored;

	if (bl_entry_key(entries[0])->slot > 0 || count_entries(&b, bl_batch_won) == 0)
		return;
	bl_batch_again(&b);
	(void)bl_session_each(s, 2, read_again, &b, &ignored);
}
