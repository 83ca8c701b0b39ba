/* Settings that an administrator may have made for everybody, and that bizlock's own sessions must
 * not inherit. Each is tried alone. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_hostile.h"

TestSuite(hostile, .fini = hostile_end, .timeout = 480);

static const struct {
	const char *name, *value;
} settings[] = {
        {"completion_type", "'CHAIN'"},
        {"completion_type", "'RELEASE'"},
        {"autocommit", "0"},
        {"transaction_isolation", "'SERIALIZABLE'"},
        {"transaction_isolation", "'READ-UNCOMMITTED'"},
        {"transaction_read_only", "1"},
        {"tx_isolation", "'SERIALIZABLE'"},
        {"tx_read_only", "1"},
        {"sql_safe_updates", "1"},
        {"sql_select_limit", "1"},
        {"sql_select_limit", "0"},
        {"max_join_size", "1"},
        {"sql_mode", "''"},
        {"sql_mode", "'ANSI,TRADITIONAL,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES'"},
        {"sql_mode", "'NO_AUTO_VALUE_ON_ZERO,HIGH_NOT_PRECEDENCE,NO_UNSIGNED_SUBTRACTION'"},
        {"sql_mode", "'ORACLE,EMPTY_STRING_IS_NULL,TIME_ROUND_FRACTIONAL'"},
        {"sql_mode", "'TIME_TRUNCATE_FRACTIONAL'"},
        {"innodb_lock_wait_timeout", "1000"},
        {"max_execution_time", "1"},
        {"max_statement_time", "0.001"},
        {"auto_increment_increment", "1000"},
        {"auto_increment_offset", "999"},
        {"foreign_key_checks", "0"},
        {"unique_checks", "0"},
        {"collation_connection", "'latin1_german2_ci'"},
        {"character_set_client", "'latin1'"},
        {"character_set_results", "'latin1'"},
        {"default_collation_for_utf8mb4", "'utf8mb4_general_ci'"},
        {"character_set_collations", "'utf8mb4=utf8mb4_unicode_ci'"},
        {"sql_auto_is_null", "1"},
        {"sql_notes", "0"},
        {"max_error_count", "0"},
        {"div_precision_increment", "0"},
        {"group_concat_max_len", "4"},
        {"time_zone", "'-11:30'"},
        {"lc_messages", "'fr_FR'"},
        {"old_mode", "'ZERO_DATE_TIME_CAST,NO_DUP_KEY_WARNINGS_WITH_IGNORE'"},
        {"system_versioning_asof", "'2001-01-01'"},
        {"default_storage_engine", "'MyISAM'"},
        {"sql_require_primary_key", "1"},
        {"sql_generate_invisible_primary_key", "1"},
        {"innodb_snapshot_isolation", "1"},
        {"session_track_transaction_info", "'CHARACTERISTICS'"},
        {"session_track_system_variables", "'*'"},
        {"idle_write_transaction_timeout", "1"},
        {"query_cache_type", "1"},
        {"big_tables", "1"},
        {"sql_buffer_result", "1"},
        {"tmp_memory_table_size", "0"},
        {"tmp_disk_table_size", "1024"},
        {"max_sort_length", "4"},
        {"sql_quote_show_create", "0"},
        {"optimizer_max_sel_arg_weight", "1"},
        {"range_optimizer_max_mem_size", "1"},
        {"eq_range_index_dive_limit", "1"},
        {"in_predicate_conversion_threshold", "2"},
        {"optimizer_search_depth", "1"},
        {"join_cache_level", "8"},
        {"explain_format", "'TREE'"},
        {"information_schema_stats_expiry", "31536000"},
        {"wsrep_osu_method", "'RSU'"},
        {"optimizer_switch", "'hypergraph_optimizer=on'"},
        {"optimizer_switch", "'derived_merge=off,index_condition_pushdown=off,mrr=on'"},
        {"optimizer_switch", "'subquery_to_derived=on,prefer_ordering_index=off'"},
        {"optimizer_switch", "'derived_with_keys=off,optimize_join_buffer_size=off'"},
};

/* SCHEMA stands for the test's schema. All servers must know these statements: an error in
 * init_connect refuses every connection. */
static const char *const connects[] = {
        "SET timestamp = 86400",
        "SET timestamp = 2000000000",
        "START TRANSACTION",
        "START TRANSACTION READ ONLY",
        "START TRANSACTION; INSERT INTO SCHEMA.ledger VALUES (CONNECTION_ID())",
        "SET completion_type = 1; START TRANSACTION",
        "SET TRANSACTION READ ONLY",
        "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
        "SET autocommit = 0",
        "LOCK TABLES SCHEMA.ledger WRITE",
        "LOCK TABLES SCHEMA.ledger READ",
        "USE information_schema",
        "SET NAMES latin1",
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
        "SET character_set_results = NULL",
        "SET last_insert_id = 4711",
        "SET @bizlock_bell = 0, @bizlock_began = 0",
        "DO GET_LOCK('x', 0)",
};

static bool interrupts(const char *name)
{
	return strcmp(name, "max_execution_time") == 0 || strcmp(name, "max_statement_time") == 0;
}

/* Settings that this server does not know are left out. Each server knows most of them. */
Test(hostile, settings_for_everybody)
{
	struct world plain = hostile_begin();
	int tried = 0;

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		char text[256];

		snprintf(text, sizeof(text), "%s = %s", settings[i].name, settings[i].value);
		if (!db_try(world.admin, "SET GLOBAL %s", text))
			continue;
		tried++;
		hostile_works(&plain, text, interrupts(settings[i].name));
		db_run(world.admin, "SET GLOBAL %s = DEFAULT", settings[i].name);
	}
	cr_assert_gt(tried, (int)(sizeof(settings) / sizeof(settings[0])) / 2);
}

static void connect_with(const char *text)
{
	char literal[512];

	snprintf(literal, sizeof(literal), "%s", db_literal(text));
	db_run(world.admin, "SET GLOBAL init_connect = CONVERT(%s USING utf8mb4)", literal);
}

Test(hostile, init_connect)
{
	struct world plain = hostile_begin();

	for (size_t i = 0; i < sizeof(connects) / sizeof(connects[0]); i++) {
		const char *at = strstr(connects[i], "SCHEMA.");
		char text[256];

		snprintf(text, sizeof(text), "%.*s%s%s", at ? (int)(at - connects[i]) : 0,
		         connects[i], at ? world.schema : connects[i],
		         at ? at + strlen("SCHEMA") : "");
		connect_with(text);
		hostile_works(&plain, text, false);
	}
	/* One of the statements has written a row for each connection. */
	cr_assert_gt(db_number(world.admin, "SELECT COUNT(*) FROM ledger"), 0);
}

/* It would be a fence that goes back, and MySQL cannot unset it. */
Test(hostile, a_fence_that_is_set_beforehand_is_refused)
{
	struct world plain = hostile_begin();

	connect_with("SET insert_id = 5");
	expect_open(DB, &plain, NULL, "insert_id");
	connect_with("");
	expect_open(OK, &plain, NULL, "");
}

/* With this setting, MySQL refuses statements that the second engine cannot run. */
Test(hostile, a_second_engine_is_not_asked_for)
{
	struct world plain = hostile_begin();

	connect_with("/*!80017 SET use_secondary_engine = FORCED */");
	expect_open(OK, &plain, NULL, "");
}
