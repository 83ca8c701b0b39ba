/* All session variables of MariaDB 10.11 and 11.8 and of MySQL 9.7 were gone through. A variable
 * has a row here when another value changes what statements of bizlock's mean, what they answer,
 * whether they are refused, or which plan they get where the plan decides who waits for whom.
 *
 * The slow log has rows for the administrator's sake.
 *
 * Without a row: what changes speed, other logs, warnings or the wording of messages; what has an
 * effect only on statements that bizlock does not send; limits of memory and of time between
 * statements, which are the administrator's; auto_increment_increment and _offset, which Galera
 * sets, and with which fences grow as well (batches ask for them); time_zone, for all times are
 * UTC. What a plain user may not set, such as sql_log_bin and binlog_format, cannot be set here
 * either: the doctor names it. */
#include "store/session/settings.h"

#include <string.h>

#include "store/sql/sql.h"

/* Which servers have the variable. A server that does not know it would refuse the whole statement;
 * each server runs its own comments and skips those of the other, behind whatever proxy it stands.
 */
#define BOTH "", ""
#define MYSQL_SINCE(version) "/*!" #version, " */"
#define MARIADB_SINCE(version) "/*M!" #version, " */"

/* DEFAULT would be the server's global value, which is what must not come in; except for timestamp,
 * which has none. */
static const struct {
	const char *name, *value;
	const char *before, *after;
} variables[] = {
        /* 0: nothing would be committed. Each statement is its own transaction. */
        {"autocommit", "1", BOTH},

        /* CHAIN: the first COMMIT opens a transaction that nobody ends, and later takes answer OK
         * without being committed. Two owners. RELEASE: each batch costs the connection. */
        {"completion_type", "'NO_CHAIN'", BOTH},

        /* Other modes change a value that does not fit, read quotes and || otherwise (ANSI_QUOTES,
         * PIPES_AS_CONCAT), take '' for NULL, or blanks for part of a key. Without the warning of a
         * division by zero no watcher is woken (bell/sleepers.c). */
        {"sql_mode", "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,ERROR_FOR_DIVISION_BY_ZERO'", BOTH},

        /* A statement that meets a locked row, or a running ALTER TABLE, comes back soon, and the
         * deadline of the call decides what then. Longer: calls outlast their deadline. */
        {"innodb_lock_wait_timeout", "1", BOTH},
        {"lock_wait_timeout", "1", BOTH},

        /* Fixed: the clock stands still, and leases with it. Two owners. */
        {"timestamp", "DEFAULT", BOTH},

        /* Set: it is the next fence, however small. There is no way to unset it in MySQL, so the
         * session is refused, by a number out of range. */
        {"@bizlock_no_insert_id", "18446744073709551615 + (@@insert_id <> 0 AND 'insert_id' <> '')",
         BOTH},

        /* latin1 and the like: the same key is another row than elsewhere. Two owners. Also where
         * the server ignores what the connection asked for. */
        {"character_set_client", "utf8mb4", BOTH},
        {"character_set_results", "utf8mb4", BOTH},
        {"collation_connection", "utf8mb4_bin", BOTH},

        /* 1: a set is not released, the reaper does not reap (1175, MariaDB). */
        {"sql_safe_updates", "0", BOTH},

        /* Few: SHOW VARIABLES and other answers end early; 0 rows make any server too old. */
        {"sql_select_limit", "18446744073709551615", BOTH},

        /* 0, which a small max_join_size implies: opening is refused (1104). */
        {"sql_big_selects", "1", BOTH},

        /* Few bytes: where rows are sorted, keys that begin alike are in any order, and the list
         * and the reaper, who go on after the last key of a page, leave some out. */
        {"max_sort_length", "1024", BOTH},

        /* Few bytes: the doctor reads the names of an index cut off, and calls the key wrong. */
        {"group_concat_max_len", "1024", BOTH},

        /* Short: long statements are interrupted (3024, 1969), GET_LOCK first of all. */
        {"max_execution_time", "0", MYSQL_SINCE(80017)},
        {"max_statement_time", "0", MARIADB_SINCE(100600)},

        /* Little: the keys of a release or a renewal are not looked up but searched for in the
         * whole table, and the statement waits for the locks of others. */
        {"range_optimizer_max_mem_size", "0", MYSQL_SINCE(80017)},
        {"optimizer_max_sel_arg_weight", "0", MARIADB_SINCE(100600)},

        /* Long: the server tells the tables' counters as they were up to a day ago. */
        {"information_schema_stats_expiry", "0", MYSQL_SINCE(80017)},

        /* FORCED: no statement is run on InnoDB (3889). */
        {"use_secondary_engine", "OFF", MYSQL_SINCE(80017)},

        /* On: EXPLAIN is refused (3999), and with it the reaper. */
        {"optimizer_switch", "'hypergraph_optimizer=off'", MYSQL_SINCE(90000)},

        /* A waiter sleeps in a statement: each of its sleeps would be a row of the slow log. */
        {"long_query_time", "31536000", BOTH},
        {"slow_query_log", "0", MARIADB_SINCE(100600)},

        /* Small: the reaper and the doctor get no temporary table (1114). More is refused by a
         * server of 32 bits, in strict mode (1231). */
        {"tmp_disk_table_size", "4294967295", MARIADB_SINCE(100600)},
};

void bl_settings_variables(struct bl_buf *ret)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++)
		bl_buf_addf(ret, "%s%s%s = %s%s", variables[i].before, i ? ", " : "SET SESSION ",
		            variables[i].name, variables[i].value, variables[i].after);
	/* READ COMMITTED: no gap locks, so that different keys do not meet. READ ONLY: no lock is
	 * given. The two servers name these variables differently. */
	bl_buf_adds(ret, ";SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE");
}

/* EVENTUAL, the default before MySQL 8.4: a new primary gives a lock that the old primary has
 * given, as long as the new one has not applied that grant. Two owners, until one of them cannot
 * commit. All other values are stronger. No comment can ask whether a server has the plugin, and an
 * unknown variable is refused. The answer to a commit has its GTID: see bl_session_vouch(). */
static void add_consistency(struct bl_buf *ret)
{
	bl_buf_adds(ret, ";SET SESSION group_replication_consistency = "
	                 "IF(@@group_replication_consistency = 'EVENTUAL', "
	                 "'BEFORE_ON_PRIMARY_FAILOVER', @@group_replication_consistency), "
	                 "SESSION session_track_gtids = OWN_GTID");
}

/* An init_connect may have left a transaction open, which would swallow all of ours; its writes,
 * about who connects perhaps, are committed. It may have locked tables: others are refused then. It
 * may have gone to another database, whose biz_lock is another table than everybody else's. */
void bl_settings_all(struct bl_buf *ret, const char *database, bool in_group)
{
	bl_settings_variables(ret);
	bl_buf_adds(ret, ";COMMIT AND NO CHAIN NO RELEASE;UNLOCK TABLES;USE ");
	bl_sql_name(ret, database, strlen(database));
	if (in_group)
		add_consistency(ret);
}
