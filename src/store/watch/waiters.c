#include "store/watch/waiters.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One statement asks about this many keys. */
#define ASKED_MAX 512

/* Room for the numbers of watchers: a client has few watchers. */
#define WATCHERS_TEXT_MAX 65536

/* ---- who watches ----------------------------------------------------------------------------- */

static void read_asked(MYSQL_ROW row, struct bl_waited_key *asked, size_t n)
{
	char *at = row ? row[0] : NULL;

	for (size_t i = 0; at && i < n * BL_SLEEPER_NAMES; i++) {
		char *end;

		asked[i / BL_SLEEPER_NAMES].by[i % BL_SLEEPER_NAMES] = strtoull(at, &end, 10);
		at = *end == ',' ? end + 1 : NULL;
	}
}

static int ask_some(struct bl_session *s, struct bl_waited_key *asked, size_t n, struct bl_err *err)
{
	struct bl_rows *rows;
	int rc;

	bl_buf_reset(&s->text);
	bl_buf_adds(&s->text, "SELECT CONCAT_WS(','");
	for (size_t i = 0; i < n * BL_SLEEPER_NAMES; i++) {
		bl_sleepers_add_name(&s->text, ",IFNULL(IS_USED_LOCK", i % BL_SLEEPER_NAMES,
		                     asked[i / BL_SLEEPER_NAMES].bell, "");
		bl_buf_adds(&s->text, ",0)");
	}
	bl_buf_adds(&s->text, ")");
	rc = bl_session_query_text(s, 1, &rows, err);
	if (rc != BIZLOCK_OK)
		return rc;
	read_asked(bl_rows_next(rows), asked, n);
	bl_rows_free(rows);
	return rc;
}

static int ask_all(struct bl_session *s, struct bl_waited_key *asked, size_t n, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	for (size_t i = 0; rc == BIZLOCK_OK && i < n; i += ASKED_MAX)
		rc = ask_some(s, asked + i, n - i < ASKED_MAX ? n - i : ASKED_MAX, err);
	return rc;
}

/* ---- the process list ------------------------------------------------------------------------ */

static int query_list(struct bl_session *s, const char *schema, const char *others,
                      struct bl_rows **ret, struct bl_err *err)
{
	bl_buf_reset(&s->text);
	bl_sql_waiters(s->sql, &s->text, schema, others);
	return bl_session_query_text(s, 5, ret, err);
}

/* MySQL refuses information_schema's list while anybody runs a statement with characters of four
 * bytes (3854). performance_schema's list does not exist before 8.0.22, and is empty where
 * performance_schema is off. */
static int read_list(struct bl_session *s, const char *others, struct bl_rows **ret,
                     struct bl_err *err)
{
	int rc = query_list(s, "information_schema", others, ret, err);
	struct bl_err second;

	if (rc == BIZLOCK_DB && !s->sql->mariadb) {
		bl_err_clear(&second);
		if (query_list(s, "performance_schema", others, ret, &second) == BIZLOCK_OK) {
			bl_err_clear(err);
			return BIZLOCK_OK;
		}
	}
	return rc == BIZLOCK_OK ? rc : bl_err_wrap(err, "read the process list");
}

/* ---- whom it shows --------------------------------------------------------------------------- */

/* The process list knows bells, not keys. */
static int by_bell(const void *a, const void *b)
{
	return strcmp(((const struct bl_waited_key *)a)->bell,
	              ((const struct bl_waited_key *)b)->bell);
}

static const struct bl_waited_key *find(const struct bl_waited_key *asked, size_t n,
                                        const char *bell)
{
	struct bl_waited_key wanted = {.key = NULL};

	snprintf(wanted.bell, sizeof(wanted.bell), "%s", bell ? bell : "");
	return bsearch(&wanted, asked, n, sizeof(*asked), by_bell);
}

static void add_waiter(struct bl_waiters *to, MYSQL_ROW row, const struct bl_waited_key *asked,
                       int64_t waited_ms)
{
	struct bl_waiter *w = &to->all[to->count];

	if (to->count == to->room) /* a server that lists a connection twice */
		return;
	to->count++;
	w->asked = asked;
	w->connection = bl_rows_u64(row[0]);
	snprintf(w->user, sizeof(w->user), "%s", row[1] ? row[1] : "");
	snprintf(w->host, sizeof(w->host), "%s", row[2] ? row[2] : "");
	w->waited_ms = waited_ms;
}

static bool watches(const struct bl_waited_key *asked, uint64_t id)
{
	for (unsigned i = 0; i < BL_SLEEPER_NAMES; i++)
		if (asked->by[i] == id)
			return id > 0;
	return false;
}

/* A connection at a bell waits for one key; a watcher may wait for many. A key that is asked about
 * twice is shown once. */
static void add_row(struct bl_waiters *to, MYSQL_ROW row, const struct bl_waited_key *asked,
                    size_t n)
{
	uint64_t id = bl_rows_u64(row[0]);
	const struct bl_waited_key *at;

	if (row[4] && *row[4]) {
		at = find(asked, n, row[4]);
		if (at)
			add_waiter(to, row, at, bl_rows_number(row[3]));
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (watches(&asked[i], id) && (i == 0 || by_bell(&asked[i - 1], &asked[i]) != 0))
			add_waiter(to, row, &asked[i], -1);
}

/* ---- both together --------------------------------------------------------------------------- */

/* Adds the watcher's number to the list, once. */
static void list_watcher(struct bl_buf *ret, uint64_t id)
{
	char number[32];

	snprintf(number, sizeof(number), ",%" PRIu64 ",", id);
	if (!ret->failed && !strstr(ret->data, number))
		bl_buf_adds(ret, number + 1);
}

/* The watchers' numbers, each before a comma; and how many waits there are. */
static size_t list_watchers(struct bl_buf *ret, const struct bl_waited_key *asked, size_t n)
{
	size_t waits = 0;

	bl_buf_adds(ret, "0,");
	for (size_t i = 0; i < n; i++)
		for (unsigned slot = 0; slot < BL_SLEEPER_NAMES; slot++) {
			if (asked[i].by[slot] == 0)
				continue;
			waits++;
			list_watcher(ret, asked[i].by[slot]);
		}
	return waits;
}

int bl_waiters_read(struct bl_session *s, struct bl_waited_key *asked, size_t n,
                    struct bl_waiters *ret, struct bl_err *err)
{
	struct bl_waiters found = {NULL, 0, 0};
	struct bl_buf watchers = BL_BUF_INIT(WATCHERS_TEXT_MAX);
	struct bl_rows *rows = NULL;
	MYSQL_ROW row;
	size_t waits;
	int rc;

	qsort(asked, n, sizeof(*asked), by_bell);
	rc = ask_all(s, asked, n, err);
	if (rc != BIZLOCK_OK)
		return rc;
	waits = list_watchers(&watchers, asked, n);
	rc = watchers.failed ? bl_err_set(err, BIZLOCK_NOMEM, "out of memory")
	                     : read_list(s, watchers.data, &rows, err);
	bl_buf_free(&watchers);
	if (!rows)
		return rc;
	found.room = rows->count + waits;
	found.all = calloc(found.room + 1, sizeof(*found.all));
	while (found.all && (row = bl_rows_next(rows)) != NULL)
		add_row(&found, row, asked, n);
	bl_rows_free(rows);
	if (!found.all)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	*ret = found;
	return BIZLOCK_OK;
}
