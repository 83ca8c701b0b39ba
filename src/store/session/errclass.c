#include "store/session/errclass.h"

#include <errmsg.h>
#include <mysqld_error.h>
#include <stddef.h>
#include <string.h>

/* Numbers that one of the two connectors' headers lacks. */
enum {
	MARIADB_CHECKREAD = 1020, /* innodb_snapshot_isolation: row changed since the snapshot */
	MARIADB_KILLED = 1927,    /* ER_CONNECTION_KILLED */
	MARIADB_STATEMENT_TIMEOUT = 1969, /* max_statement_time */
	READ_ONLY_MODE = 1836,            /* ER_READ_ONLY_MODE */
	FENCE_CONFLICT = 1869,            /* ER_AUTO_INCREMENT_CONFLICT */
	MYSQL_QUERY_TIMEOUT = 3024,       /* max_execution_time */
	MYSQL_USER_LOCK_DEADLOCK = 3058,  /* GET_LOCK would wait in a circle */
	GROUP_HOOK_REFUSED = 3100,        /* ER_RUN_HOOK_ERROR: no majority, or expelled */
	GROUP_ROLLED_BACK = 3101,         /* ER_TRANSACTION_ROLLBACK_DURING_COMMIT */
	MYSQL_NOT_AVAILABLE = 3168,       /* ER_SERVER_ISNT_AVAILABLE */
	MYSQL_KILLED = 3169,              /* ER_SESSION_WAS_KILLED */
	/* ER_GRP_TRX_CONSISTENCY_...: the member waited in vain when a transaction began. */
	GROUP_NOT_ALLOWED = 3796,
	GROUP_NOT_BEFORE = 3797,
	GROUP_NOT_AFTER = 3798,
	GROUP_NOT_BEGUN = 3799,
	MYSQL_IDLE = 4031 /* ER_CLIENT_INTERACTION_TIMEOUT */
};

static const struct {
	unsigned native;
	enum bl_class class;
} classes[] = {
        {CR_SERVER_GONE_ERROR, BL_CLASS_GONE},
        {CR_SERVER_LOST, BL_CLASS_GONE},
        {CR_SERVER_LOST_EXTENDED, BL_CLASS_GONE},
        {CR_CONNECTION_ERROR, BL_CLASS_GONE},
        {CR_CONN_HOST_ERROR, BL_CLASS_GONE},
        {CR_COMMANDS_OUT_OF_SYNC, BL_CLASS_GONE},
        {CR_MALFORMED_PACKET, BL_CLASS_GONE},
        {CR_SSL_CONNECTION_ERROR, BL_CLASS_GONE},
        {ER_NET_PACKETS_OUT_OF_ORDER, BL_CLASS_GONE}, /* libmysqlclient's word for a torn answer */
        {ER_NET_UNCOMPRESS_ERROR, BL_CLASS_GONE},
        {ER_NET_READ_ERROR, BL_CLASS_GONE},
        {ER_NET_READ_INTERRUPTED, BL_CLASS_GONE},
        {ER_NET_ERROR_ON_WRITE, BL_CLASS_GONE},
        {ER_NET_WRITE_INTERRUPTED, BL_CLASS_GONE},
        {MYSQL_IDLE, BL_CLASS_GONE},
        {ER_ERROR_DURING_COMMIT,
         BL_CLASS_DOUBT},                     /* a Galera node that lost the others, a full disk */
        {GROUP_HOOK_REFUSED, BL_CLASS_DOUBT}, /* an expelled member, say: it sent the change to the
                                                 others before it waited for them */
        {ER_SERVER_SHUTDOWN, BL_CLASS_AWAY},
        {MARIADB_KILLED, BL_CLASS_KILLED},
        {MYSQL_KILLED, BL_CLASS_KILLED},
        {ER_UNKNOWN_COM_ERROR, BL_CLASS_AWAY}, /* a Galera node that is not ready */
        {ER_OPTION_PREVENTS_STATEMENT, BL_CLASS_AWAY},
        {ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION, BL_CLASS_AWAY},
        {READ_ONLY_MODE, BL_CLASS_AWAY},
        {MYSQL_NOT_AVAILABLE, BL_CLASS_AWAY},
        {GROUP_NOT_ALLOWED, BL_CLASS_AWAY},
        {GROUP_NOT_BEFORE, BL_CLASS_AWAY},
        {GROUP_NOT_AFTER, BL_CLASS_AWAY},
        {GROUP_NOT_BEGUN, BL_CLASS_AWAY},
        {ER_LOCK_DEADLOCK, BL_CLASS_RETRY}, /* also Galera's certification failure */
        {ER_LOCK_WAIT_TIMEOUT, BL_CLASS_RETRY},
        {ER_AUTOINC_READ_FAILED, BL_CLASS_RETRY}, /* it waited in vain for the lock of the table's
                                                     counter, which an INSERT ... SELECT has, or a
                                                     backup */
        {BL_TABLE_LOCKED, BL_CLASS_RETRY},
        {GROUP_ROLLED_BACK, BL_CLASS_RETRY},
        {FENCE_CONFLICT, BL_CLASS_RETRY}, /* the row has come from another member meanwhile, and its
                                             fence is in the step of the counter drawn here */
        {MARIADB_CHECKREAD, BL_CLASS_RETRY},
        {MYSQL_USER_LOCK_DEADLOCK, BL_CLASS_RETRY},
        {ER_BAD_NULL_ERROR, BL_CLASS_NULL},
        {ER_NET_PACKET_TOO_LARGE, BL_CLASS_TOO_LARGE},
        {ER_NO_SUCH_TABLE, BL_CLASS_MISSING},
        {ER_BAD_DB_ERROR, BL_CLASS_MISSING},
        {ER_QUERY_INTERRUPTED, BL_CLASS_STOPPED},
        {MARIADB_STATEMENT_TIMEOUT, BL_CLASS_STOPPED},
        {MYSQL_QUERY_TIMEOUT, BL_CLASS_STOPPED},
};

enum bl_class bl_classify(unsigned native)
{
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++)
		if (classes[i].native == native)
			return classes[i].class;
	return BL_CLASS_OTHER;
}

bool bl_class_ends_connection(enum bl_class class)
{
	return class == BL_CLASS_GONE || class == BL_CLASS_DOUBT || class == BL_CLASS_KILLED ||
	       class == BL_CLASS_AWAY;
}

bool bl_was_stopped(const struct bl_err *err)
{
	enum bl_class class = bl_classify(err->native);

	return class == BL_CLASS_STOPPED || class == BL_CLASS_RETRY;
}

bool bl_waited_in_vain(const struct bl_err *err)
{
	return err->native == ER_LOCK_WAIT_TIMEOUT || err->native == ER_AUTOINC_READ_FAILED ||
	       err->native == BL_TABLE_LOCKED;
}

bool bl_table_locked(const struct bl_err *err)
{
	return err->native == BL_TABLE_LOCKED;
}

int bl_err_locked(struct bl_err *err, int code, const char *table, bool whole)
{
	if (whole)
		bl_err_set(err, code,
		           "table %s is locked by another session (LOCK TABLES, FLUSH TABLES WITH "
		           "READ LOCK, a backup or an ALTER)",
		           table);
	else
		bl_err_set(err, code,
		           "rows of table %s are locked by another session (a transaction that is "
		           "open, or a backup)",
		           table);
	err->native = whole ? BL_TABLE_LOCKED : ER_LOCK_WAIT_TIMEOUT;
	return code;
}

bool bl_before_commit(const struct bl_err *err)
{
	return err->native == ER_DATA_OUT_OF_RANGE || err->native == ER_LOCK_DEADLOCK ||
	       err->native == ER_BAD_NULL_ERROR;
}

bool bl_told_held(const struct bl_err *err)
{
	return err->native == ER_DATA_OUT_OF_RANGE;
}

bool bl_told_over(const struct bl_err *err)
{
	return err->native == ER_WARN_DATA_OUT_OF_RANGE;
}

bool bl_no_table(const struct bl_err *err)
{
	return err->native == ER_NO_SUCH_TABLE || err->native == ER_TABLEACCESS_DENIED_ERROR;
}

bool bl_server_full(const struct bl_err *err)
{
	return err->refused == ER_CON_COUNT_ERROR || err->refused == ER_TOO_MANY_USER_CONNECTIONS ||
	       err->refused == ER_USER_LIMIT_REACHED;
}

bool bl_password_refused(const struct bl_err *err)
{
	return err->refused == ER_ACCESS_DENIED_ERROR ||
	       err->refused == ER_ACCESS_DENIED_NO_PASSWORD_ERROR;
}

/* The connectors have several errors for a server that is not there. */
bool bl_server_away(const struct bl_err *err)
{
	static const unsigned passing[] = {
	        CR_CONNECTION_ERROR,  CR_CONN_HOST_ERROR,  CR_UNKNOWN_HOST,
	        CR_SERVER_GONE_ERROR, CR_SERVER_LOST,      CR_SERVER_LOST_EXTENDED,
	        ER_SERVER_SHUTDOWN,   MYSQL_NOT_AVAILABLE, ER_OPTION_PREVENTS_STATEMENT,
	};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++)
		if (err->refused == passing[i])
			return true;
	return bl_server_full(err);
}

/* The connectors say CR_SERVER_GONE_ERROR when a statement could not be sent to its end; a
 * reply that does not come is CR_SERVER_LOST. The server said MYSQL_IDLE when it ended the
 * connection, before there was anything to read. */
bool bl_may_have_run(const struct bl_err *err)
{
	bool unread = err->native == CR_SERVER_GONE_ERROR || err->native == MYSQL_IDLE;
	enum bl_class class = bl_classify(err->native);

	return class == BL_CLASS_DOUBT || (class == BL_CLASS_GONE && !unread);
}

/* 1180 has two meanings, and the storage engine's number in it tells which: by 149 a member of a
 * group says that a transaction lost against another member's, and was rolled back. The words
 * around it are in the server's language. */
static unsigned meaning(unsigned native, const char *text)
{
	return native == ER_ERROR_DURING_COMMIT && strstr(text, "149") ? ER_LOCK_DEADLOCK : native;
}

int bl_err_native(struct bl_err *err, unsigned native, const char *text)
{
	unsigned means = meaning(native, text);
	int code = bl_class_ends_connection(bl_classify(means)) ? BIZLOCK_CONN : BIZLOCK_DB;

	bl_err_set(err, code, "%s (%u)", text, native);
	err->native = means;
	return code;
}
