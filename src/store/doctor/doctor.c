#include "store/doctor/doctor.h"

#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "store/doctor/doctor_checks.h"
#include "store/hosts/failover.h"
#include "store/session/errclass.h"

#define TEXT_MAX 16384 /* far more than there is to say */

enum needs { NOTHING, VARIABLES, DATABASE, BOTH = VARIABLES | DATABASE };

static const struct {
	const char *name;
	enum needs needs;
	bl_check *look;
} checks[] = {
        {"connection", NOTHING, bl_check_connection},
        {"database", NOTHING, bl_check_database},
        {"server", VARIABLES, bl_check_server},
        {"tables", DATABASE, bl_check_tables},
        {"engine", DATABASE, bl_check_engine},
        {"primary_key", DATABASE, bl_check_primary_key},
        {"collation", BOTH, bl_check_collation},
        {"auto_increment", BOTH, bl_check_auto_increment},
        {"additions", DATABASE, bl_check_additions},
        {"limits", DATABASE, bl_check_shared_limits},
        {"routines", DATABASE, bl_check_routines},
        {"grants", DATABASE, bl_check_grants},
        {"sql_mode", VARIABLES, bl_check_sql_mode},
        {"isolation", VARIABLES, bl_check_isolation},
        {"transactions", VARIABLES, bl_check_transactions},
        {"inherited", VARIABLES, bl_check_inherited},
        {"binlog_format", VARIABLES, bl_check_binlog_format},
        {"filters", BOTH, bl_check_filters},
        {"read_only", VARIABLES, bl_check_read_only},
        {"galera", VARIABLES, bl_check_galera},
        {"group", VARIABLES, bl_check_group},
        {"doorbell", VARIABLES, bl_check_doorbell},
        {"watching", VARIABLES, bl_check_watching},
        {"proxy", VARIABLES, bl_check_proxy},
        {"connections", VARIABLES, bl_check_connections},
        {"threads", VARIABLES, bl_check_threads},
        {"quotas", NOTHING, bl_check_quotas},
        {"prepared_statements", VARIABLES, bl_check_statements},
        {"wait_timeout", VARIABLES, bl_check_wait_timeout},
        {"packets", VARIABLES, bl_check_packets},
        {"durability", VARIABLES, bl_check_durability},
        {"clock", NOTHING, bl_check_clock},
        {"lock", BOTH, bl_check_lock}, /* the last one: it may cost the connection */
};

/* ---- what checks use ------------------------------------------------------------------------ */

void bl_worse(struct bl_finding *f, enum bizlock_level level)
{
	if (f->level < level)
		f->level = level;
	if (f->remedy.len > 0)
		bl_buf_adds(&f->remedy, "; ");
}

void bl_advise(struct bl_finding *f, enum bizlock_level level, const char *fmt, ...)
{
	va_list args;

	bl_worse(f, level);
	va_start(args, fmt);
	bl_buf_addv(&f->remedy, fmt, args);
	va_end(args);
}

const char *bl_variable(const struct bl_doctor *d, const char *name)
{
	MYSQL_ROW row;

	bl_rows_rewind(d->variables);
	while ((row = bl_rows_next(d->variables)) != NULL)
		if (row[0] && strcasecmp(row[0], name) == 0)
			return row[1] ? row[1] : "";
	return "";
}

long long bl_variable_number(const struct bl_doctor *d, const char *name)
{
	return bl_rows_number(bl_variable(d, name));
}

bool bl_variable_on(const struct bl_doctor *d, const char *name)
{
	const char *value = bl_variable(d, name);

	return value[0] && strcasecmp(value, "OFF") != 0 && strcmp(value, "0") != 0;
}

int bl_doctor_query(struct bl_doctor *d, unsigned columns, struct bl_rows **ret, struct bl_err *err,
                    const char *fmt, ...)
{
	struct bl_buf *text = &d->session.text;
	va_list args;

	bl_buf_reset(text);
	va_start(args, fmt);
	bl_buf_addv(text, fmt, args);
	va_end(args);
	return bl_session_query_text(&d->session, columns, ret, err);
}

/* ---- begin and end -------------------------------------------------------------- */

static int ask_variables(struct bl_doctor *d, struct bl_err *err)
{
	int rc = bl_server_read(&d->session, &d->server, err);

	if (rc != BIZLOCK_OK)
		return rc;
	return bl_doctor_query(
	        d, 2, &d->variables, err,
	        "SHOW SESSION VARIABLES WHERE Variable_name IN ('sql_mode', 'tx_isolation', "
	        "'transaction_isolation', 'innodb_snapshot_isolation', "
	        "'innodb_rollback_on_timeout', 'log_bin', 'sql_log_bin', 'binlog_format', "
	        "'read_only', "
	        "'super_read_only', 'innodb_read_only', 'innodb_autoinc_lock_mode', "
	        "'max_connections', 'max_user_connections', 'max_prepared_stmt_count', "
	        "'wait_timeout', 'max_allowed_packet', 'innodb_flush_log_at_trx_commit', "
	        "'sync_binlog', 'thread_handling', 'thread_pool_max_threads')");
}

/* Connects as bizlock_open() would; if that fails, in a way that leaves something to look at. */
static bool reach(struct bl_doctor *d)
{
	struct bl_err err;

	if (bl_failover_connect_once(d->config, false, &d->session, &d->refused) == BIZLOCK_OK) {
		bl_err_clear(&d->refused); /* what the hosts before this one said */
		return true;
	}
	if (d->refused.code == BIZLOCK_NOMEM ||
	    bl_failover_connect_once(d->config, true, &d->session, &err) != BIZLOCK_OK)
		return false;
	bl_session_begin(&d->session);
	if (mysql_select_db(d->session.mysql, d->config->database) != 0)
		bl_session_error(&d->session, &d->no_database);
	bl_session_end(&d->session);
	return true;
}

void bl_doctor_begin(struct bl_doctor *ret, const struct bl_config *config,
                     const struct bl_process *process)
{
	memset(ret, 0, sizeof(*ret));
	ret->config = config;
	ret->process = process;
	ret->reached = reach(ret);
	if (!ret->reached)
		return;
	if (bl_session_ask_word(&ret->session, "SELECT CURRENT_USER()", ret->account,
	                        sizeof(ret->account), &ret->blind) != BIZLOCK_NOMEM &&
	    ask_variables(ret, &ret->blind) == BIZLOCK_OK)
		bl_err_clear(&ret->blind);
}

void bl_doctor_end(struct bl_doctor *d)
{
	if (d->variables)
		bl_rows_free(d->variables);
	bl_session_close(&d->session);
}

/* ---- one check --------------------------------------------------------------------- */

/* A server's text may hold anything; here it must not forge a line. */
static void tame(struct bl_buf *text)
{
	for (size_t i = 0; i < text->len; i++)
		if ((unsigned char)text->data[i] < ' ' || text->data[i] == 0x7f)
			text->data[i] = '?';
}

/* A server that refuses this may well answer the next. */
static int not_looked_at(struct bl_finding *f, const struct bl_err *err)
{
	if (err->code == BIZLOCK_NOMEM)
		return err->code;
	bl_buf_reset(&f->text);
	if (bl_classify(err->native) == BL_CLASS_GONE) {
		bl_buf_addf(&f->text, "the connection was lost: %s", err->msg);
		bl_advise(f, BIZLOCK_BAD, "see why the server ends connections, and look again");
		return err->code;
	}
	bl_buf_addf(&f->text, "could not be looked at: %s", err->msg);
	bl_advise(f, BIZLOCK_WARN, "look again as a user who may, or when the server answers");
	return BIZLOCK_OK;
}

static int make(struct bl_doctor *d, size_t number, struct bl_finding *f, struct bl_err *err)
{
	enum needs needs = checks[number].needs;
	int rc;

	if (d->blind.code == BIZLOCK_NOMEM) {
		*err = d->blind;
		return err->code;
	}
	if ((needs & DATABASE) && d->no_database.code != BIZLOCK_OK)
		return BIZLOCK_OK;
	if ((needs & VARIABLES) && d->blind.code != BIZLOCK_OK) {
		*err = d->blind;
		return not_looked_at(f, err);
	}
	rc = checks[number].look(d, f, err);
	return rc == BIZLOCK_OK || !d->reached ? rc : not_looked_at(f, err);
}

size_t bl_doctor_checks(void)
{
	return sizeof(checks) / sizeof(checks[0]);
}

int bl_doctor_look(struct bl_doctor *d, size_t number, struct bl_finding *ret, struct bl_err *err)
{
	struct bl_finding f = {
	        .name = checks[number].name,
	        .level = BIZLOCK_GOOD,
	        .text = BL_BUF_INIT(TEXT_MAX),
	        .remedy = BL_BUF_INIT(TEXT_MAX),
	};
	int rc = make(d, number, &f, err);

	if (f.text.failed || f.remedy.failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	tame(&f.text);
	tame(&f.remedy);
	*ret = f;
	return rc;
}

void bl_finding_free(struct bl_finding *f)
{
	bl_buf_free(&f->text);
	bl_buf_free(&f->remedy);
}
