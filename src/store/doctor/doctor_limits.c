/* The doctor's checks of limits, durability and time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "store/doctor/doctor_checks.h"
#include "store/table/grants.h"

#define IDLE_SLACK_S 10
#define PACKET_MIN (1 << 20) /* a statement about many locks, keys in hexadecimal */
#define CLOCK_MAX_US 1000000

static int status_number(struct bl_doctor *d, const char *name, long long *ret, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 2, &rows, err, "SHOW GLOBAL STATUS LIKE '%s'", name);

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	*ret = row ? bl_rows_number(row[1]) : 0;
	bl_rows_free(rows);
	return rc;
}

/* The renewer has a connection of its own. */
static long long connections_of(const struct bl_doctor *d)
{
	return (long long)d->config->max_connections + 1;
}

int bl_check_connections(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	long long ours = connections_of(d), used = 0;
	long long all = bl_variable_number(d, "max_connections");
	long long of_user = bl_variable_number(d, "max_user_connections");
	int rc = status_number(d, "Threads_connected", &used, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_addf(&f->text,
	            "up to %lld of this client; max_connections=%lld, of which %lld are used", ours,
	            all, used);
	if (of_user > 0)
		bl_buf_addf(&f->text, "; max_user_connections=%lld", of_user);
	if (of_user > 0 && of_user < ours)
		bl_advise(f, BIZLOCK_WARN,
		          "set the client's option max_connections to %lld or less, or "
		          "max_user_connections to more: who gets none answers CONN",
		          of_user > 1 ? of_user - 1 : 1);
	if (all - used < ours)
		bl_advise(f, BIZLOCK_WARN,
		          "set the server's max_connections to more, or the client's option of "
		          "this name to less: who gets none answers CONN");
	return BIZLOCK_OK;
}

int bl_check_statements(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	long long ours = BL_STMT_COUNT * connections_of(d), used = 0;
	long long all = bl_variable_number(d, "max_prepared_stmt_count");
	int rc = status_number(d, "Prepared_stmt_count", &used, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_addf(&f->text,
	            "up to %lld of this client; max_prepared_stmt_count=%lld, of which %lld are "
	            "used",
	            ours, all, used);
	if (all - used < ours)
		bl_advise(f, BIZLOCK_WARN,
		          "set max_prepared_stmt_count to %lld or more: what the server does not "
		          "prepare is parsed each time",
		          used + ours);
	return BIZLOCK_OK;
}

/* A connection that sleeps in GET_LOCK keeps a thread of a pool, and the statement that would wake
 * it needs another thread. */
int bl_check_threads(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *handling = bl_variable(d, "thread_handling");
	long long threads = bl_variable_number(d, "thread_pool_max_threads");
	long long connections = bl_variable_number(d, "max_connections");

	(void)err;
	bl_buf_addf(&f->text, "thread_handling=%s", handling);
	if (strcasecmp(handling, "pool-of-threads") != 0)
		return BIZLOCK_OK;
	bl_buf_addf(&f->text, ", thread_pool_max_threads=%lld", threads);
	if (threads < connections)
		bl_advise(f, BIZLOCK_WARN,
		          "set thread_pool_max_threads to max_connections (%lld) or more: each "
		          "waiter keeps a thread, and releases and renewals wait for one",
		          connections);
	return BIZLOCK_OK;
}

/* The user's limits for an hour. max_user_connections is among the variables. */
int bl_check_quotas(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	static const char *const names[] = {"MAX_QUERIES_PER_HOUR ", "MAX_UPDATES_PER_HOUR ",
	                                    "MAX_CONNECTIONS_PER_HOUR "};
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 1, &rows, err, "SHOW CREATE USER CURRENT_USER()");

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	for (size_t i = 0; row && row[0] && i < sizeof(names) / sizeof(names[0]); i++) {
		const char *found = strstr(row[0], names[i]);
		long long most = found ? strtoll(found + strlen(names[i]), NULL, 10) : 0;

		if (most > 0)
			bl_buf_addf(&f->text, "%s%s%lld", f->text.len > 0 ? ", " : "", names[i],
			            most);
	}
	bl_rows_free(rows);
	if (f->text.len == 0) {
		bl_buf_adds(&f->text, "none");
		return rc;
	}
	bl_advise(f, BIZLOCK_WARN, "ALTER USER ");
	bl_grants_account(&f->remedy, d->account[0] ? d->account : "...");
	bl_buf_adds(&f->remedy, " WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 "
	                        "MAX_CONNECTIONS_PER_HOUR 0: when they are used up, renewals are "
	                        "refused, and locks are lost");
	return rc;
}

/* A connection that holds doorbells gets a statement at half of wait_timeout, from a thread that
 * may be busy for as long as an answer may take. */
int bl_check_wait_timeout(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	long long s = bl_variable_number(d, "wait_timeout");
	long long min_s = 2 * ((long long)d->config->io_timeout_ms / 1000) + IDLE_SLACK_S;

	(void)err;
	bl_buf_addf(&f->text, "%lld s", s);
	if (s < min_s)
		bl_advise(f, BIZLOCK_WARN,
		          "set wait_timeout to %lld or more: a connection that is ended before "
		          "bizlock could keep it alive takes its doorbells with it, and those who "
		          "wait poll",
		          min_s);
	return BIZLOCK_OK;
}

int bl_check_packets(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	long long size = bl_variable_number(d, "max_allowed_packet");

	(void)err;
	bl_buf_addf(&f->text, "max_allowed_packet=%lld", size);
	if (size < PACKET_MIN)
		bl_advise(f, BIZLOCK_WARN,
		          "set it to %d or more: statements about very many locks do not fit, and "
		          "leases that are not renewed are lost",
		          PACKET_MIN);
	return BIZLOCK_OK;
}

/* MariaDB's 3 flushes at each commit, too, and once more before it. */
int bl_check_durability(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	long long flush = bl_variable_number(d, "innodb_flush_log_at_trx_commit");
	bool logs = bl_variable_on(d, "log_bin");
	long long sync = bl_variable_number(d, "sync_binlog");

	(void)err;
	bl_buf_addf(&f->text, "innodb_flush_log_at_trx_commit=%lld", flush);
	if (logs)
		bl_buf_addf(&f->text, ", sync_binlog=%lld", sync);
	if (flush != 1 && !(d->server.mariadb && flush == 3))
		bl_advise(f, BIZLOCK_WARN,
		          "set innodb_flush_log_at_trx_commit to 1: when the machine crashes, the "
		          "last acquisitions and their fences may be forgotten");
	if (logs && sync != 1)
		bl_advise(f, BIZLOCK_WARN,
		          "set sync_binlog to 1: after a crash of the machine, what is not in the "
		          "binary log may be rolled back");
	return BIZLOCK_OK;
}

/* The server's clock minus ours, and by how much this difference may be wrong. */
static int look_at_clocks(struct bl_doctor *d, int64_t *ret_us, int64_t *ret_doubt_us,
                          struct bl_err *err)
{
	static const char query[] =
	        "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
	int64_t before = bl_wall_us(), after, server = 0;
	int rc = bl_session_ask(&d->session, query, strlen(query), NULL, &server, err);

	after = bl_wall_us();
	if (rc != BIZLOCK_OK)
		return rc;
	*ret_us = server - (before + after) / 2;
	*ret_doubt_us = llabs(after - before) / 2;
	return rc;
}

int bl_check_clock(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	int64_t us = 0, doubt = 0, off;
	int rc = look_at_clocks(d, &us, &doubt, err);

	if (rc != BIZLOCK_OK)
		return rc;
	off = llabs(us);
	bl_buf_addf(&f->text, "the server's is %" PRId64 ".%03d s %s this host's", off / 1000000,
	            (int)(off / 1000 % 1000), us < 0 ? "behind" : "ahead of");
	if (off - doubt > CLOCK_MAX_US)
		bl_advise(
		        f, BIZLOCK_WARN,
		        "synchronise both: locks go by the server's clock alone, but when that is "
		        "set right, leases end early or late by the step");
	return BIZLOCK_OK;
}
