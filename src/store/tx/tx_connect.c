#include "store/tx/tx_connect.h"

#include <stdio.h>

#include "core/hosts.h"
#include "store/session/errclass.h"
#include "store/tx/tx.h"

static int check_handle(MYSQL *mysql, struct bl_err *err)
{
	if (!mysql)
		return bl_err_set(err, BIZLOCK_INVALID, "tx is NULL");
	if (bl_connector_was_used(mysql))
		return bl_err_set(err, BIZLOCK_MISUSE,
		                  "tx is connected, or was: mysql_close() it, and take a new "
		                  "handle of mysql_init()");
	return BIZLOCK_OK;
}

/* The server that has the locks; "": any that the address leads to. */
static void name_server(struct bl_failover *f, const struct bl_session *s,
                        char ret[BL_IDENTITY_MAX + 1])
{
	if (bl_hosts_several(f->config.host))
		snprintf(ret, BL_IDENTITY_MAX + 1, "%s", s->server);
	else
		bl_failover_server(f, ret);
}

/* Between the session's dial and this one the address may have begun to lead to another server. */
static int check_server(struct bl_failover *f, const struct bl_session *s, MYSQL *mysql,
                        struct bl_err *err)
{
	struct bl_tx tx = {.mysql = mysql};
	int rc = BIZLOCK_OK;

	name_server(f, s, tx.identity);
	if (tx.identity[0])
		rc = bl_tx_ask_server(&tx, err);
	if (rc == BIZLOCK_MISUSE)
		rc = err->code = BIZLOCK_CONN;
	return rc;
}

/* A server may be told to ignore the character set that connecting asks for. */
static int set_character_set(MYSQL *mysql, struct bl_err *err)
{
	if (mysql_set_character_set(mysql, BL_CONNECTOR_CHARSET) == 0)
		return BIZLOCK_OK;
	return bl_err_native(err, mysql_errno(mysql), mysql_error(mysql));
}

/* With TLS exactly if the session has it, so that `preferred` means the same for both. */
static int connect_beside(struct bl_failover *f, const struct bl_session *s, MYSQL *mysql,
                          struct bl_err *err)
{
	const struct bl_host *host = bl_failover_host(f, s);
	const char *name = host->name[0] ? host->name : NULL;
	struct bl_config config = bl_failover_config(f);
	bool connected;
	int rc;

	bl_connector_prepare(mysql, &config, name, bl_connector_has_tls(s->mysql));
	connected = bl_connector_dial(mysql, &config, name, host->port ? host->port : config.port,
	                              config.database, 0);
	rc = bl_connector_judge(mysql, &config, connected, err);
	if (rc == BIZLOCK_OK)
		rc = set_character_set(mysql, err);
	if (rc == BIZLOCK_OK)
		rc = check_server(f, s, mysql, err);
	if (rc != BIZLOCK_OK && connected)
		bl_connector_cut(mysql);
	return rc;
}

/* A session of bizlock's own goes first: to find the host that takes writes, to see that password
 * and TLS are the right ones, and because a server that never ends its answer keeps nobody waiting
 * there. */
int bl_tx_connect(struct bl_failover *f, MYSQL *mysql, struct bl_err *err)
{
	struct bl_session s;
	int rc = check_handle(mysql, err);

	if (rc == BIZLOCK_OK)
		rc = bl_failover_connect(f, NULL, BL_NEVER, &s, err);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = connect_beside(f, &s, mysql, err);
	bl_session_close(&s);
	return rc;
}
