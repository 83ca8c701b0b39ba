#define _GNU_SOURCE 1
#include "admin.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clients.h"
#include "patience.h"

static MYSQL *log_in(const struct chaos_site *site, unsigned node)
{
	return db_open(&site->cluster.nodes[node], site->schema);
}

/* Where one node alone takes writes, that one. */
static unsigned writer(const struct chaos_site *site, unsigned node)
{
	int primary = site->cluster.has_one_primary ? cluster_primary(&site->cluster) : (int)node;

	return primary < 0 ? node : (unsigned)primary;
}

/* ---- what is locked for a while ----------------------------------------------------------- */

/* It harms nobody where the server refuses it. */
static bool lock_for_a_while(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                             int64_t *ret_us, const char *lock, const char *unlock)
{
	MYSQL *db = log_in(site, node);

	*ret_us = chaos_now_us();
	if (!db_try(db, "%s", lock))
		fprintf(stderr, "%s: %s\n", lock, mysql_error(db));
	pause_ms(plan->for_ms);
	db_try(db, "%s", unlock);
	mysql_close(db);
	return true;
}

bool chaos_lock_tables(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                       int64_t *ret_us)
{
	return lock_for_a_while(site, plan, node, ret_us,
	                        plan->replies ? "LOCK TABLES biz_lock READ"
	                                      : "LOCK TABLES biz_lock WRITE",
	                        "UNLOCK TABLES");
}

bool chaos_block_commits(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                         int64_t *ret_us)
{
	return lock_for_a_while(site, plan, node, ret_us, "FLUSH TABLES WITH READ LOCK",
	                        "UNLOCK TABLES");
}

bool chaos_keep_old_view(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                         int64_t *ret_us)
{
	return lock_for_a_while(site, plan, node, ret_us,
	                        "START TRANSACTION WITH CONSISTENT SNAPSHOT;"
	                        "SELECT COUNT(*) FROM biz_lock",
	                        "ROLLBACK");
}

bool chaos_back_up(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                   int64_t *ret_us)
{
	if (site->cluster.is_group)
		return lock_for_a_while(site, plan, node, ret_us, "LOCK INSTANCE FOR BACKUP",
		                        "UNLOCK INSTANCE");
	return lock_for_a_while(site, plan, node, ret_us,
	                        "BACKUP STAGE START; BACKUP STAGE FLUSH; BACKUP STAGE BLOCK_DDL;"
	                        "BACKUP STAGE BLOCK_COMMIT",
	                        "BACKUP STAGE END");
}

/* ---- changes of the tables ----------------------------------------------------------------- */

static void *alter(void *arg)
{
	db_try(arg, "ALTER TABLE biz_lock FORCE");
	return NULL;
}

/* The transaction has only read, and everybody waits behind the ALTER that waits for it. */
bool chaos_alter_behind_tx(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                           int64_t *ret_us)
{
	unsigned at = writer(site, node);
	MYSQL *forgotten = log_in(site, at), *db = log_in(site, at);
	pthread_t thread;
	bool begun;

	db_run(forgotten, "BEGIN; SELECT COUNT(*) FROM biz_lock");
	*ret_us = chaos_now_us();
	begun = pthread_create(&thread, NULL, alter, db) == 0;
	pause_ms(plan->for_ms);
	db_try(forgotten, "COMMIT");
	if (begun)
		pthread_join(thread, NULL);
	mysql_close(forgotten);
	mysql_close(db);
	return begun;
}

/* What came between is tried again: another node's change may have ended it. */
static bool insist(MYSQL *db, const char *text)
{
	for (unsigned i = 0; i < 20; i++) {
		if (db_try(db, "%s", text))
			return true;
		pause_ms(100);
	}
	fprintf(stderr, "%.60s: %s\n", text, mysql_error(db));
	return false;
}

/* "NEW.biz_id,NEW.biz_type,..." of all columns, or of those of the primary key: as the table has
 * them, so that a column which a migration adds is copied, too. To be freed. */
static char *columns_of_lock(MYSQL *db, const char *prefix, bool only_primary)
{
	return db_text(db,
	               "SELECT GROUP_CONCAT('%s', COLUMN_NAME ORDER BY ORDINAL_POSITION) "
	               "FROM information_schema.COLUMNS "
	               "WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'biz_lock'%s",
	               prefix, only_primary ? " AND COLUMN_KEY = 'PRI'" : "");
}

static bool copy_each_change(MYSQL *db)
{
	static const char *const events[] = {"INSERT", "UPDATE"};
	char *all = columns_of_lock(db, "", false), *new = columns_of_lock(db, "NEW.", false);
	char *key = columns_of_lock(db, "", true), *old = columns_of_lock(db, "OLD.", true);
	char text[2048];
	bool good = true;

	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof(text),
		         "CREATE TRIGGER copy_%s AFTER %s ON biz_lock FOR EACH ROW "
		         "REPLACE INTO copied (%s) VALUES (%s)",
		         events[i], events[i], all, new);
		good = good && insist(db, text);
	}
	snprintf(text, sizeof(text),
	         "CREATE TRIGGER copy_DELETE AFTER DELETE ON biz_lock FOR EACH ROW "
	         "DELETE FROM copied WHERE (%s) = (%s)",
	         key, old);
	good = good && insist(db, text);
	free(all);
	free(new);
	free(key);
	free(old);
	return good;
}

/* As pt-online-schema-change does it, but with a counter that is set above all that was ever drawn,
 * as docs/operations.md asks for: the copy begins with its own. */
bool chaos_swap_copy(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                     int64_t *ret_us)
{
	MYSQL *db = log_in(site, writer(site, node));
	char counter[96];
	struct timespec now;
	bool good;

	*ret_us = chaos_now_us();
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(counter, sizeof(counter), "ALTER TABLE copied AUTO_INCREMENT = %" PRId64,
	         (int64_t)now.tv_sec * 1000000);
	good = insist(db, "CREATE TABLE copied LIKE biz_lock") && insist(db, counter) &&
	       copy_each_change(db) &&
	       insist(db, "INSERT IGNORE INTO copied SELECT * FROM biz_lock LOCK IN SHARE MODE");
	pause_ms(plan->for_ms);
	good = good && insist(db, "RENAME TABLE biz_lock TO replaced, copied TO biz_lock");
	insist(db, "DROP TRIGGER IF EXISTS copy_INSERT; DROP TRIGGER IF EXISTS copy_UPDATE;"
	           "DROP TRIGGER IF EXISTS copy_DELETE");
	insist(db, "DROP TABLE IF EXISTS copied, replaced");
	mysql_close(db);
	return good;
}

/* ---- connections --------------------------------------------------------------------------- */

/* Nobody gets in any more; whoever is in stays. */
bool chaos_fill_server(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                       int64_t *ret_us)
{
	MYSQL *db = log_in(site, node);
	long long most = db_number(db, "SELECT @@GLOBAL.max_connections");
	bool good;

	*ret_us = chaos_now_us();
	good = db_try(db, "SET GLOBAL max_connections = %lld", db_status(db, "Threads_connected"));
	pause_ms(plan->for_ms);
	good = db_try(db, "SET GLOBAL max_connections = %lld", most) && good;
	mysql_close(db);
	return good;
}

bool chaos_kill_sleepers(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                         int64_t *ret_us)
{
	MYSQL *db = log_in(site, node);
	char *ids, *rest;

	*ret_us = chaos_now_us();
	for (unsigned i = 0; i < 3; i++) {
		ids = db_text(db, "SELECT ID FROM information_schema.PROCESSLIST "
		                  "WHERE USER = 'chaos' AND COMMAND = 'Sleep'");
		rest = ids;
		for (char *id; (id = strtok_r(rest, "\n", &rest)) != NULL;)
			db_try(db, "KILL %s", id); /* it may have gone */
		free(ids);
		pause_ms(plan->for_ms / 3);
	}
	mysql_close(db);
	return true;
}

void chaos_write_password(const struct chaos_site *site, const char *password)
{
	char written[320];
	FILE *out;

	snprintf(written, sizeof(written), "%s.new", site->option_file);
	out = fopen(written, "w");
	if (!out || fprintf(out, "[client]\npassword=%s\n", password) < 0 || fclose(out) != 0 ||
	    rename(written, site->option_file) != 0)
		die("cannot write %s", site->option_file);
}

bool chaos_change_password(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                           int64_t *ret_us)
{
	MYSQL *db = log_in(site, writer(site, node));
	char password[64];
	bool good;

	*ret_us = chaos_now_us();
	snprintf(password, sizeof(password), "bizlock-test-%" PRId64, *ret_us);
	good = db_try(db, "ALTER USER chaos@'%%' IDENTIFIED BY '%s'", password);
	if (good)
		chaos_write_password(site, password);
	mysql_close(db);
	pause_ms(plan->for_ms);
	return good;
}
