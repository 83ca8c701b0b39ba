#define _GNU_SOURCE 1
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "patience.h"

void world_make(struct world *w, const struct server *at)
{
	unsigned random;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		die("getrandom failed");
	w->at = *at;
	snprintf(w->schema, sizeof(w->schema), "bizlock_%d_%08x", (int)getpid(), random);
	w->admin = db_open(at, NULL);
	db_run(w->admin, "CREATE DATABASE `%s`; USE `%s`", w->schema, w->schema);
}

void world_migrate(const struct world *w)
{
	bizlock *b = client_new(w, NULL);

	if (bizlock_migrate(b) != BIZLOCK_OK)
		die("migrate: %s", bizlock_errmsg(b));
	bizlock_close(b);
}

void world_kill_connections(const struct world *w)
{
	char *ids = db_text(w->admin,
	                    "SELECT ID FROM information_schema.PROCESSLIST"
	                    " WHERE DB = '%s' AND ID <> CONNECTION_ID()",
	                    w->schema);
	char *rest;

	for (char *id = strtok_r(ids, "\n", &rest); id; id = strtok_r(NULL, "\n", &rest))
		db_try(w->admin, "KILL %s", id); /* the connection may have ended */
	free(ids);
}

void world_drop(struct world *w)
{
	int64_t end = now_ms() + 2 * PATIENCE_MS;

	/* A test that failed may have left a transaction open, which would keep the tables for
	 * ever. */
	db_run(w->admin, "SET SESSION lock_wait_timeout = 5, SESSION innodb_lock_wait_timeout = 5");
	while (!db_try(w->admin, "DROP DATABASE `%s`", w->schema)) {
		if (!pause_before(end))
			die("DROP DATABASE: %s", mysql_error(w->admin));
		world_kill_connections(w);
	}
	mysql_close(w->admin);
	w->admin = NULL;
}

struct world world_by_way_of(const struct world *w, const struct server *at)
{
	struct world other = *w;

	other.at = *at;
	return other;
}

/* ---- clients ------------------------------------------------------------- */

static void set(bizlock *b, const char *option, const char *value)
{
	if (bizlock_set(b, option, value) != BIZLOCK_OK)
		die("set: %s", bizlock_errmsg(b));
}

static void set_server(bizlock *b, const struct server *at)
{
	char port[16];

	snprintf(port, sizeof(port), "%u", at->port);
	set(b, "host", at->socket[0] ? "localhost" : at->host);
	if (at->socket[0])
		set(b, "socket", at->socket);
	else if (at->port)
		set(b, "port", port);
	if (at->plain)
		set(b, "ssl_mode", "disabled");
	if (at->user[0])
		set(b, "user", at->user);
	if (at->password[0])
		set(b, "password", at->password);
}

bizlock *client_new(const struct world *w, const char *const *options)
{
	bizlock *b;

	if (bizlock_new(&b) != BIZLOCK_OK)
		die("new: %s", bizlock_errmsg(NULL));
	set_server(b, &w->at);
	set(b, "database", w->schema);
	set(b, "runtime_dir", ""); /* holders that are killed are to leave their leases */
	for (; options && *options; options += 2)
		set(b, options[0], options[1]);
	return b;
}

bizlock *client_open(const struct world *w, const char *const *options)
{
	bizlock *b = client_new(w, options);
	int rc;

	for (int64_t end = now_ms() + PATIENCE_MS / 2; (rc = bizlock_open(b)) == BIZLOCK_CONN;)
		if (!pause_before(end))
			break;
	must_work(b, rc, "open");
	return b;
}

void must_work(bizlock *b, int rc, const char *what)
{
	if (rc != BIZLOCK_OK)
		die("%s: %s", what, bizlock_errmsg(b));
}

/* ---- keys and rows ------------------------------------------------------- */

const char *row_where(bizlock_key key)
{
	static _Thread_local char texts[2][1024];
	static _Thread_local unsigned next;
	char *text = texts[next++ % 2];

	snprintf(text, sizeof(texts[0]), "biz_id = %s AND biz_type = %s", db_literal(key.biz_id),
	         db_literal(key.biz_type));
	return text;
}

const char *slot_0_where(bizlock_key key)
{
	static _Thread_local char text[1024 + sizeof(" AND " SLOT_0)];

	snprintf(text, sizeof(text), "%s AND " SLOT_0, row_where(key));
	return text;
}

long long locks_there(const struct world *w)
{
	return db_number(w->admin, "SELECT COUNT(*) FROM biz_lock WHERE NOT " FREE_ROWS);
}

long long all_rows(const struct world *w)
{
	return db_number(w->admin, "SELECT COUNT(*) FROM biz_lock");
}

bool no_row(const struct world *w, bizlock_key key)
{
	return db_number(w->admin, "SELECT COUNT(*) FROM biz_lock WHERE %s", row_where(key)) == 0;
}

/* sscanf() would not read the owner "" of a resting lock: hence the sign before it. */
static struct row read_row(const struct world *w, const char *from)
{
	struct row row = {0};
	char owner[1 + sizeof(row.owner)] = "=";
	char *text = db_text(w->admin,
	                     "SELECT CONCAT('=', owner), fence, reentrant,"
	                     " TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), timeout),"
	                     " TIMESTAMPDIFF(MICROSECOND, '1970-01-01', timeout), note"
	                     " FROM %s",
	                     from);

	row.there = sscanf(text, "%192[^|]|%llu|%u|%lld|%lld|%255[^\n]", owner, &row.fence,
	                   &row.depth, &row.left_us, &row.timeout_us, row.note) >= 5;
	snprintf(row.owner, sizeof(row.owner), "%s", owner + 1);
	if (!row.there && text[0])
		die("unexpected row: %s", text);
	free(text);
	return row;
}

struct row row_of(const struct world *w, bizlock_key key)
{
	char from[1280];

	snprintf(from, sizeof(from), "biz_lock WHERE %s AND NOT " FREE_ROWS, slot_0_where(key));
	return read_row(w, from);
}

struct row shared_row_of(const struct world *w, bizlock_key key)
{
	char from[1280];

	snprintf(from, sizeof(from), "biz_lock WHERE %s AND owner <> '' ORDER BY slot DESC LIMIT 1",
	         row_where(key));
	return read_row(w, from);
}

long long doorbell_waiters(const struct world *w)
{
	return db_number(w->admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND STATE = 'User lock'"
	                 " AND INFO LIKE '%%GET_LOCK(''bizlock:%%'",
	                 w->schema);
}

long long shared_sleepers(const struct world *w)
{
	return db_number(w->admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND STATE IN ('User sleep', 'User lock')"
	                 " AND INFO LIKE 'SELECT IF(EXISTS(%%'",
	                 w->schema);
}

#define WATCHES "STATE IN ('User sleep', 'User lock') AND INFO LIKE 'SELECT IF((SELECT COUNT(%%'"

long long watchers(const struct world *w)
{
	return db_number(w->admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND " WATCHES,
	                 w->schema);
}

long long watcher(const struct world *w)
{
	return db_number(w->admin,
	                 "SELECT COALESCE(MAX(ID), 0) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND " WATCHES,
	                 w->schema);
}

long long watchers_for(const struct world *w, unsigned ms)
{
	return db_number(w->admin,
	                 "SELECT COUNT(*) FROM information_schema.PROCESSLIST"
	                 " WHERE DB = '%s' AND " WATCHES
	                 " AND 1000 * SUBSTRING_INDEX(INFO, 'SLEEP(', -1) > %u",
	                 w->schema, ms);
}
