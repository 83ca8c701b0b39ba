#define _GNU_SOURCE 1
#include "db.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

static void copy_env(char *to, size_t size, const char *name)
{
	const char *value = getenv(name);

	snprintf(to, size, "%s", value ? value : "");
}

struct server server_from_env(void)
{
	struct server at = {0};
	const char *port = getenv("BIZLOCK_TEST_PORT"), *mode = getenv("BIZLOCK_SSL_MODE");

	copy_env(at.host, sizeof(at.host), "BIZLOCK_TEST_HOST");
	copy_env(at.socket, sizeof(at.socket), "BIZLOCK_TEST_SOCKET");
	copy_env(at.user, sizeof(at.user), "BIZLOCK_TEST_USER");
	copy_env(at.password, sizeof(at.password), "BIZLOCK_TEST_PASSWORD");
	copy_env(at.tls_ca, sizeof(at.tls_ca), "BIZLOCK_TEST_TLS_CA");
	at.port = port ? (unsigned)strtoul(port, NULL, 10) : 0;
	at.plain = mode && strcmp(mode, "disabled") == 0;
	if (!at.host[0] && !at.socket[0])
		die("no server: set BIZLOCK_TEST_HOST or BIZLOCK_TEST_SOCKET, or use tests/run.sh");
	return at;
}

struct server server_over_tcp(struct server at, const char *host, unsigned port)
{
	snprintf(at.host, sizeof(at.host), "%s", host);
	at.socket[0] = '\0';
	at.port = port;
	return at;
}

static const char *or_null(const char *s)
{
	return s[0] ? s : NULL;
}

#if defined(MARIADB_BASE_VERSION) || defined(MARIADB_PACKAGE_VERSION)

static void do_without_tls(MYSQL *db)
{
	my_bool off = 0;

	mysql_optionsv(db, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &off);
}

#else

/* caching_sha2_password then needs the server's key. */
static void do_without_tls(MYSQL *db)
{
	unsigned mode = SSL_MODE_DISABLED;
	bool get_key = true;

	mysql_options(db, MYSQL_OPT_SSL_MODE, &mode);
	mysql_options(db, MYSQL_OPT_GET_SERVER_PUBLIC_KEY, &get_key);
}

#endif

MYSQL *db_connect(const struct server *at, const char *schema, unsigned long flags, unsigned read_s)
{
	const char *host = at->socket[0] ? "localhost" : at->host;
	MYSQL *db = mysql_init(NULL);

	if (!db)
		die("mysql_init: out of memory");
	mysql_options(db, MYSQL_SET_CHARSET_NAME, "utf8mb4");
	if (read_s)
		mysql_options(db, MYSQL_OPT_READ_TIMEOUT, &read_s);
	if (at->plain)
		do_without_tls(db);
	if (!mysql_real_connect(db, host, or_null(at->user), or_null(at->password), schema,
	                        at->port, or_null(at->socket), flags))
		die("connect to %s: %s", host, mysql_error(db));
	return db;
}

MYSQL *db_open(const struct server *at, const char *schema)
{
	return db_connect(at, schema, CLIENT_MULTI_STATEMENTS, 0);
}

bool server_is_mysql(MYSQL *db)
{
	return !strstr(mysql_get_server_info(db), "MariaDB");
}

/* Runs one text; the result of its first statement, if it has rows, in *ret. */
static bool run(MYSQL *db, const char *text, MYSQL_RES **ret)
{
	int more;

	if (mysql_query(db, text) != 0)
		return false;
	*ret = mysql_store_result(db);
	if (!*ret && mysql_errno(db))
		return false;
	while ((more = mysql_next_result(db)) == 0)
		mysql_free_result(mysql_store_result(db));
	return more < 0;
}

static char *text_of(const char *fmt, va_list args)
{
	char *text;

	if (vasprintf(&text, fmt, args) < 0)
		die("out of memory");
	return text;
}

/* MySQL's process list refuses while somebody runs a statement with characters of four bytes. */
#define CANNOT_CONVERT_STRING 3854

static MYSQL_RES *run_or_die(MYSQL *db, const char *fmt, va_list args)
{
	char *text = text_of(fmt, args);
	MYSQL_RES *rows = NULL;
	int64_t end = now_ms() + PATIENCE_MS;

	while (!run(db, text, &rows))
		if (mysql_errno(db) != CANNOT_CONVERT_STRING || !pause_before(end))
			die("%s: %s", text, mysql_error(db));
	free(text);
	return rows;
}

void db_run(MYSQL *db, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	mysql_free_result(run_or_die(db, fmt, args));
	va_end(args);
}

bool db_try(MYSQL *db, const char *fmt, ...)
{
	MYSQL_RES *rows = NULL;
	va_list args;
	char *text;
	bool ok;

	va_start(args, fmt);
	text = text_of(fmt, args);
	va_end(args);
	ok = run(db, text, &rows);
	mysql_free_result(rows);
	free(text);
	return ok;
}

long long db_number(MYSQL *db, const char *fmt, ...)
{
	MYSQL_RES *rows;
	MYSQL_ROW row;
	va_list args;
	long long n;

	va_start(args, fmt);
	rows = run_or_die(db, fmt, args);
	va_end(args);
	row = rows ? mysql_fetch_row(rows) : NULL;
	if (!row || !row[0])
		die("no number: %s", fmt);
	n = strtoll(row[0], NULL, 10);
	mysql_free_result(rows);
	return n;
}

static void print_rows(FILE *out, MYSQL_RES *rows)
{
	unsigned fields = rows ? mysql_num_fields(rows) : 0;
	MYSQL_ROW row;

	while (rows && (row = mysql_fetch_row(rows))) {
		for (unsigned i = 0; i < fields; i++)
			fprintf(out, "%s%s", i ? "|" : "", row[i] ? row[i] : "NULL");
		fputc('\n', out);
	}
}

char *db_text(MYSQL *db, const char *fmt, ...)
{
	MYSQL_RES *rows;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	va_list args;

	va_start(args, fmt);
	rows = run_or_die(db, fmt, args);
	va_end(args);
	print_rows(out, rows);
	mysql_free_result(rows);
	if (fclose(out) != 0)
		die("out of memory");
	return text;
}

const char *db_literal(const char *s)
{
	static _Thread_local char texts[8][2 * 512 + 16];
	static _Thread_local unsigned next;
	static const char digits[] = "0123456789abcdef", prefix[] = "_utf8mb4 x'";
	char *text = texts[next++ % 8], *end = text + sizeof(prefix) - 1;

	if (strlen(s) > 512)
		die("db_literal: too long");
	memcpy(text, prefix, sizeof(prefix));
	for (; *s; s++) {
		*end++ = digits[(unsigned char)*s >> 4];
		*end++ = digits[(unsigned char)*s & 15];
	}
	memcpy(end, "'", 2);
	return text;
}

long long db_status(MYSQL *db, const char *name)
{
	char *status = db_text(db, "SHOW GLOBAL STATUS LIKE '%s'", name);
	char *value = strchr(status, '|');
	long long n = value ? strtoll(value + 1, NULL, 10) : -1;

	free(status);
	return n;
}

long long db_deadlocks(MYSQL *db)
{
	long long n = db_status(db, "Innodb_deadlocks");

	if (n >= 0)
		return n;
	return db_number(db, "SELECT `COUNT` FROM information_schema.INNODB_METRICS"
	                     " WHERE NAME = 'lock_deadlocks' AND STATUS = 'enabled'");
}
