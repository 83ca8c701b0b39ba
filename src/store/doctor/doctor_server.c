/* The doctor's checks of the server and its settings. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/doctor/doctor_checks.h"

int bl_check_connection(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *cipher;

	if (d->refused.code != BIZLOCK_OK) {
		bl_buf_adds(&f->text, d->refused.msg);
		*err = d->refused;
	}
	if (!d->reached) {
		bl_advise(f, BIZLOCK_BAD,
		          "see that the server runs, and set the options host, port, socket, "
		          "user, password and ssl_mode");
		return err->code;
	}
	if (d->refused.code != BIZLOCK_OK) {
		bl_advise(f, BIZLOCK_BAD, "see what follows");
		return BIZLOCK_OK;
	}
	cipher = mysql_get_ssl_cipher(d->session.mysql);
	bl_buf_addf(&f->text, "%s, as %s, %s", mysql_get_host_info(d->session.mysql),
	            d->account[0] ? d->account : "an unknown user",
	            cipher ? cipher : "not encrypted");
	return BIZLOCK_OK;
}

int bl_check_database(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	(void)err;
	if (d->no_database.code == BIZLOCK_OK) {
		bl_buf_adds(&f->text, d->config->database);
		return BIZLOCK_OK;
	}
	bl_buf_adds(&f->text, d->no_database.msg);
	bl_advise(f, BIZLOCK_BAD,
	          "create the database and call bizlock_migrate(), or grant this user what "
	          "bizlock_grants() writes");
	return BIZLOCK_OK;
}

int bl_check_server(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	(void)err;
	bl_buf_addf(&f->text, "%s %s", d->server.mariadb ? "MariaDB" : "MySQL", d->server.text);
	if (bl_server_too_old(&d->server)) {
		bl_buf_adds(&f->text, " is too old");
		bl_advise(f, BIZLOCK_BAD, "use " BL_SERVER_NEEDED);
	}
	return BIZLOCK_OK;
}

/* ---- what bizlock sets itself, for each of its sessions: good, whatever the server's
 * default is, unless something between the two has taken it away ------------------- */

static void own_setting(struct bl_finding *f, const char *value, bool kept)
{
	bl_buf_addf(&f->text, "%s%s", value,
	            kept ? ", set by bizlock for its own sessions"
	                 : ", although bizlock has set another for its session");
	if (!kept)
		bl_advise(f, BIZLOCK_BAD,
		          "connect without what changes or swallows SET SESSION on the way");
}

int bl_check_sql_mode(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *mode = bl_variable(d, "sql_mode");

	(void)err;
	own_setting(f, mode, strstr(mode, "STRICT_ALL_TABLES") != NULL);
	return BIZLOCK_OK;
}

int bl_check_isolation(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *level = bl_variable(d, "transaction_isolation");

	(void)err;
	if (!level[0])
		level = bl_variable(d, "tx_isolation");
	own_setting(f, level, strcasecmp(level, "READ-COMMITTED") == 0);
	return BIZLOCK_OK;
}

struct inherited {
	char completion[16], connect[64]; /* "": nothing there */
};

static int read_inherited(struct bl_doctor *d, struct inherited *ret, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 2, &rows, err,
	                         "SHOW GLOBAL VARIABLES WHERE Variable_name IN "
	                         "('completion_type', 'init_connect')");

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL) {
		bool connect = row[0] && strcasecmp(row[0], "init_connect") == 0;

		snprintf(connect ? ret->connect : ret->completion,
		         connect ? sizeof(ret->connect) : sizeof(ret->completion), "%s",
		         row[1] ? row[1] : "");
	}
	bl_rows_free(rows);
	return rc;
}

/* Settings that bizlock keeps out of its own sessions, but that reach the users' sessions. And
 * sql_log_bin, which a user may not set, and so bizlock cannot. */
int bl_check_inherited(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct inherited found = {"", ""};
	bool logs = bl_variable_on(d, "log_bin"), skips = logs && !bl_variable_on(d, "sql_log_bin");
	int rc = read_inherited(d, &found, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_addf(&f->text, "completion_type=%s", found.completion);
	if (found.connect[0])
		bl_buf_addf(&f->text, ", init_connect=%s", found.connect);
	if (skips)
		bl_buf_adds(&f->text, ", sql_log_bin=OFF in this user's sessions");
	if (strcasecmp(found.completion, "NO_CHAIN") != 0)
		bl_advise(f, BIZLOCK_WARN,
		          "set completion_type to NO_CHAIN: after a COMMIT of your own, the next "
		          "transaction is open, and its locks stay (CHAIN), or the connection is "
		          "gone (RELEASE)");
	if (skips)
		bl_advise(f, BIZLOCK_WARN,
		          "do not set sql_log_bin to OFF, in init_connect for example: a replica "
		          "that takes over knows nothing of the locks, and gives them again");
	return rc;
}

/* What bizlock_tx.h meets in transactions of the user's own. */
int bl_check_transactions(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	bool rollback = bl_variable_on(d, "innodb_rollback_on_timeout");

	(void)err;
	bl_buf_addf(&f->text, "innodb_rollback_on_timeout=%s", rollback ? "ON" : "OFF");
	if (bl_variable_on(d, "innodb_snapshot_isolation"))
		bl_buf_adds(&f->text, ", innodb_snapshot_isolation=ON, which bizlock_tx.h does "
		                      "without in its own statements");
	if (rollback)
		bl_advise(
		        f, BIZLOCK_WARN,
		        "set it to OFF: a bizlock_row_lock() that waits in vain ends the whole "
		        "transaction; on MariaDB BIZLOCK_ROW_SKIP is used where it need not wait");
	return BIZLOCK_OK;
}

/* ---- what the server is to others ------------------------------------------------- */

int bl_check_binlog_format(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const char *format = bl_variable(d, "binlog_format");

	(void)err;
	if (bl_variable_on(d, "log_bin"))
		bl_buf_addf(&f->text, "%s", format[0] ? format : "ROW");
	else
		bl_buf_adds(&f->text, "no binary log");
	if (!d->server.read_committed)
		bl_advise(f, BIZLOCK_BAD,
		          "set binlog_format to MIXED or ROW: STATEMENT refuses writes under READ "
		          "COMMITTED");
	return BIZLOCK_OK;
}

int bl_check_read_only(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	static const char *const names[] = {"read_only", "super_read_only", "innodb_read_only"};

	(void)err;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (bl_variable_on(d, names[i]))
			bl_buf_addf(&f->text, "%s%s=%s", f->text.len ? ", " : "", names[i],
			            bl_variable(d, names[i]));
	if (f->text.len > 0)
		bl_advise(f, BIZLOCK_BAD,
		          "lead bizlock to the server that takes writes, by the option host");
	else
		bl_buf_adds(&f->text, "takes writes");
	return BIZLOCK_OK;
}
