/* The doctor's checks of the tables. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "store/doctor/doctor_checks.h"
#include "store/session/errclass.h"
#include "store/sql/phrases.h"
#include "store/table/fences.h"
#include "store/table/routines.h"
#include "store/table/schema.h"

static const char *comma(const struct bl_finding *f)
{
	return f->text.len > 0 ? ", " : "";
}

/* ---- tables ---------------------------------------------------------------------- */

static int find_tables(struct bl_doctor *d, bool there[BL_NEEDS], struct bl_err *err)
{
	const char *prefix = d->config->table_prefix;
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 1, &rows, err,
	                         "SELECT TABLE_NAME FROM information_schema.TABLES WHERE "
	                         "TABLE_SCHEMA = DATABASE() AND TABLE_NAME IN ('%sbiz_lock', "
	                         "'%sbiz_row_lock', '%sbiz_lock_schema', '%sbiz_run')",
	                         prefix, prefix, prefix, prefix);

	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		if (row[0] && bl_table_of(prefix, row[0]) >= 0)
			there[bl_table_of(prefix, row[0])] = true;
	bl_rows_free(rows);
	return rc;
}

/* Names the tables that are missing; GOOD: none is. Without the table of runs there are locks. */
static enum bizlock_level name_missing(const struct bl_doctor *d, struct bl_finding *f,
                                       const bool there[BL_NEEDS])
{
	enum bizlock_level level = BIZLOCK_GOOD;

	for (size_t i = 0; i < BL_NEEDS; i++) {
		if (there[i])
			continue;
		bl_buf_addf(&f->text, "%s%s%s", comma(f), d->config->table_prefix,
		            bl_needs[i].table);
		if (level != BIZLOCK_BAD)
			level = bl_needs[i].for_locks ? BIZLOCK_BAD : BIZLOCK_WARN;
	}
	if (level != BIZLOCK_GOOD)
		bl_buf_adds(&f->text, ": missing, or this user may not see it");
	return level;
}

int bl_check_tables(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	bool there[BL_NEEDS] = {false};
	struct bl_version at = {0, 0};
	unsigned newest = bl_schema_newest();
	enum bizlock_level missing;
	int rc = find_tables(d, there, err);

	if (rc == BIZLOCK_OK && there[BL_TABLE_SCHEMA])
		rc = bl_schema_version(&d->session, d->config->table_prefix, &at, err);
	if (rc != BIZLOCK_OK)
		return rc;
	missing = name_missing(d, f, there);
	if (missing == BIZLOCK_BAD) {
		bl_advise(f, missing, BL_SCHEMA_ADVICE);
		return rc;
	}
	d->fit = at.version > 0 && at.needs_client <= newest;
	bl_buf_addf(&f->text, "%s there, of version %u; this library knows %u",
	            missing ? ", so runs are not recorded; the others are" : "all", at.version,
	            newest);
	if (at.version == 0)
		bl_advise(f, BIZLOCK_BAD, BL_SCHEMA_ADVICE);
	else if (at.version < newest || (missing && d->fit))
		bl_advise(f, BIZLOCK_WARN, BL_SCHEMA_ADVICE);
	else if (!d->fit)
		bl_advise(f, BIZLOCK_BAD,
		          "upgrade bizlock: the tables need a library that knows version %u",
		          at.needs_client);
	return rc;
}

/* ---- what they are like -------------------------------------------------------------------- */

struct showing {
	struct bl_finding *f;
	enum bl_fact_of of, also; /* which facts */
	unsigned right;           /* how many of them */
};

static void show_fact(void *arg, const struct bl_fact *fact)
{
	struct showing *to = arg;

	if (fact->of != to->of && fact->of != to->also)
		return;
	to->right += !fact->remedy[0];
	if (fact->of == BL_FACT_COLLATION && !fact->remedy[0])
		return; /* all alike */
	bl_buf_addf(&to->f->text, "%s%s", comma(to->f), fact->text);
	if (fact->remedy[0])
		bl_advise(to->f,
		          fact->of == BL_FACT_INDEX || !bl_needs[fact->table].for_locks
		                  ? BIZLOCK_WARN
		                  : BIZLOCK_BAD,
		          "%s", fact->remedy);
}

static int show_facts(struct bl_doctor *d, struct bl_finding *f, enum bl_fact_of of,
                      enum bl_fact_of also, struct bl_err *err)
{
	struct showing to = {f, of, also, 0};
	int rc = bl_tables_look(&d->session, d->config->table_prefix, show_fact, &to, err);

	if (rc == BIZLOCK_OK && f->text.len == 0 && to.right > 0)
		bl_buf_adds(&f->text, "keys and owners compare byte for byte");
	return rc;
}

int bl_check_engine(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	return show_facts(d, f, BL_FACT_ENGINE, BL_FACT_ENGINE, err);
}

int bl_check_primary_key(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	return show_facts(d, f, BL_FACT_KEY, BL_FACT_INDEX, err);
}

int bl_check_collation(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	return show_facts(d, f, BL_FACT_COLLATION, BL_FACT_COLLATION, err);
}

/* Which servers keep the counter through a restart: a fence must never come twice. */
static bool counter_is_kept(const struct bl_server *server)
{
	return server->version >= (server->mariadb ? 100204u : 80000u);
}

static void judge_server(const struct bl_doctor *d, struct bl_finding *f)
{
	long long mode = bl_variable_number(d, "innodb_autoinc_lock_mode");

	bl_buf_addf(&f->text, ", %s by this server; innodb_autoinc_lock_mode=%lld",
	            counter_is_kept(&d->server) ? "kept" : "not kept", mode);
	if (!counter_is_kept(&d->server))
		bl_advise(f, BIZLOCK_BAD,
		          "use " BL_SERVER_NEEDED ": after a restart fences may come again");
	if (mode == 0)
		bl_advise(f, BIZLOCK_WARN,
		          "start the server with innodb_autoinc_lock_mode=1 or 2: with 0 "
		          "acquisitions of all keys wait for each other");
}

/* Not in a cluster, where each member counts for itself. */
static int judge_floors(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_fence_counter counter;
	int rc;

	if (bl_server_in_cluster(&d->server))
		return BIZLOCK_OK;
	rc = bl_fences_read(&d->session, d->config->table_prefix, &counter, err);
	if (rc != BIZLOCK_OK || !counter.next || counter.next >= counter.floor)
		return rc;
	bl_buf_addf(&f->text, ", but the next fence is %" PRIu64 ", and was %" PRIu64 " before",
	            counter.next, counter.floor);
	bl_advise(f, BIZLOCK_BAD,
	          "run `bizlock migrate --raise-fences`: TRUNCATE, ALTER TABLE ... "
	          "AUTO_INCREMENT, a dump or a copy in its place has set it back");
	return rc;
}

int bl_check_auto_increment(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	int rc = show_facts(d, f, BL_FACT_COUNTER, BL_FACT_COUNTER, err);

	if (rc != BIZLOCK_OK || f->text.len == 0)
		return rc;
	judge_server(d, f);
	rc = judge_floors(d, f, err);
	return rc == BIZLOCK_DB && bl_no_table(err) ? BIZLOCK_OK : rc; /* another finding */
}

/* ---- limits of shared locks ---------------------------------------------------------------- */

#define DIFFER                                                                                     \
	"SELECT biz_type, biz_id, MIN(at_most), MAX(at_most) FROM `%sbiz_lock` WHERE " SHARING     \
	" AND timeout > " NOW " GROUP BY biz_id, biz_type HAVING MIN(at_most) <> MAX(at_most) "    \
	"LIMIT 1"

int bl_check_shared_limits(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 4, &rows, err, DIFFER, d->config->table_prefix);

	if (rc != BIZLOCK_OK)
		return rc == BIZLOCK_DB && bl_no_table(err) ? BIZLOCK_OK : rc;
	row = bl_rows_next(rows);
	if (!row) {
		bl_buf_adds(&f->text, "all that share a lock do so with one limit");
	} else {
		bl_buf_addf(&f->text, "%s/%s is held with limits from %s to %s",
		            row[0] ? row[0] : "", row[1] ? row[1] : "", row[2] ? row[2] : "",
		            row[3] ? row[3] : "");
		bl_advise(f, BIZLOCK_WARN,
		          "pass one limit wherever this lock is acquired: each call counts those "
		          "of all limits, and lets in as many as its own allows");
	}
	bl_rows_free(rows);
	return rc;
}

/* ---- routines ------------------------------------------------------------------------------- */

/* Nothing is said where there are none, or where this user may not see them. */
int bl_check_routines(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct bl_routines at;
	int rc = bl_routines_look(&d->session, d->config->table_prefix, &at, err);

	if (rc != BIZLOCK_OK || at.there == 0)
		return rc;
	bl_buf_addf(&f->text, "%u of %u there, %s of this library; they run as %s", at.there,
	            bl_routines_count(), at.old > 0 ? "not all" : "all", at.definer);
	if (at.old > 0)
		bl_advise(f, BIZLOCK_WARN,
		          "run bizlock migrate --routines: old routines and new clients may not "
		          "take locks in the same way");
	return rc;
}
