/* The doctor's last check: takes a lock of its own, renews it and gives it back, by the statements
 * that clients send. So it meets anything that keeps clients from their locks. */
#include <inttypes.h>
#include <stdio.h>

#include "base/rnd.h"
#include "store/doctor/doctor_checks.h"
#include "store/hosts/failover.h"
#include "store/row/renew_many.h"
#include "store/row/take.h"
#include "store/session/errclass.h"
#include "store/session/kill.h"

#define LEASE_MS 10000 /* a server that dies in the middle keeps the lock for this time */

struct trial {
	struct bl_sql sql;
	struct bl_key key;
	struct bl_goal goal;
	char owner[BL_OWNER_MAX + 1];
	const char *step; /* the one that failed */
	bool may_be_there;
};

/* Doctors that look at the same time must not meet: each has a key that nobody else has. */
static int begin_trial(struct bl_doctor *d, struct trial *ret, struct bl_err *err)
{
	uint64_t number;
	char id[64];
	struct bl_owner owner;
	int rc;

	if (!bl_random_bytes(&number, sizeof(number)))
		return bl_err_set(err, BIZLOCK_UNSUPPORTED, "the kernel gives no random numbers");
	snprintf(id, sizeof(id), "doctor-%016" PRIx64, number);
	rc = bl_key_make(&ret->key, (bizlock_key){BIZLOCK_REAPER_TYPE, id}, err);
	if (rc == BIZLOCK_OK)
		rc = bl_owner_make(&owner, "doctor", err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_owner_full(&owner, d->process, ret->owner);
	ret->goal.key = &ret->key;
	rc = bl_sql_make(&ret->sql, d->config->table_prefix, d->config->database, d->server.mariadb,
	                 false, err);
	ret->sql.compound = d->server.compound;
	ret->sql.galera = d->server.galera;
	ret->sql.group = d->server.group;
	return rc;
}

static struct bl_ref hold_of(const struct trial *t)
{
	return (struct bl_ref){.key = &t->key, .owner = t->owner, .fence = t->goal.fence};
}

/* ---- the steps ------------------------------------------------------------------------- */

static int take(struct trial *t, struct bl_session *s, struct bl_err *err)
{
	struct bl_claim claim = {t->owner, NULL, LEASE_MS};
	struct bl_goal *goals[] = {&t->goal};
	struct bl_with_bells none = {false, NULL};
	enum bl_took took;
	bool over;
	int rc = bl_take(s, &claim, goals, 1, none, &took, &over, err);

	t->step = "taken";
	t->may_be_there = rc == BIZLOCK_OK || bl_may_have_run(err);
	if (rc == BIZLOCK_OK && took != BL_TOOK_ALL)
		return bl_err_set(err, BIZLOCK_DB, "a key that nobody has is not free");
	return rc;
}

/* As the renewer does, not as bizlock_renew(): the statements differ in what they lock. */
static int renew(struct trial *t, const struct bl_process *process, struct bl_session *s,
                 struct bl_err *err)
{
	struct bl_item item = {.key = t->key, .fence = t->goal.fence};
	struct bl_renewal renewal = {
	        .items = &item, .n = 1, .suffix = process->suffix, .lease_ms = LEASE_MS};
	struct bl_renewed renewed = {0, 0};
	int rc = bl_renew_many(s, &renewal, &renewed, err);

	t->step = "renewed";
	if (rc == BIZLOCK_OK && renewed.matched != 1)
		return bl_err_set(err, BIZLOCK_DB, "its row is not there");
	return rc;
}

static int give_back(struct trial *t, struct bl_session *s, struct bl_err *err)
{
	bool matched = false;
	int rc = bl_lock_drop(s, hold_of(t), NULL, 0, &matched, err);

	t->step = "released";
	t->may_be_there = rc != BIZLOCK_OK;
	if (rc == BIZLOCK_OK && !matched)
		return bl_err_set(err, BIZLOCK_DB, "its row is not there");
	return rc;
}

/* The row must not stay behind, even if the connection was lost. */
static void clean_up(struct bl_doctor *d, struct trial *t)
{
	struct bl_session other = {.mysql = NULL}, *s = &d->session;
	struct bl_err ignored;

	if (s->gone) {
		s = &other;
		if (bl_failover_connect_once(d->config, false, s, &ignored) != BIZLOCK_OK)
			return;
		s->sql = &t->sql;
		bl_kill_marked(s, &d->session.mark, &ignored); /* it may still be at work */
	}
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "DELETE FROM %s", t->sql.table);
	bl_sql_key(&s->text, &t->key);
	bl_session_run_text(s, NULL, &ignored);
	bl_session_close(&other);
}

/* ---- what is in the way ---------------------------------------------------------------- */

/* MySQL tells users who may see it which connection has locked the table, or all tables. MariaDB
 * does not. */
static void add_who_is_in_the_way(struct bl_doctor *d, struct bl_finding *f)
{
	struct bl_rows *rows;
	struct bl_err ignored;
	MYSQL_ROW row;
	int rc = bl_doctor_query(
	        d, 3, &rows, &ignored,
	        "SELECT t.PROCESSLIST_ID, t.PROCESSLIST_USER, t.PROCESSLIST_TIME FROM "
	        "performance_schema.metadata_locks m JOIN performance_schema.threads t ON "
	        "t.THREAD_ID = m.OWNER_THREAD_ID WHERE m.LOCK_STATUS = 'GRANTED' AND "
	        "t.PROCESSLIST_ID <> CONNECTION_ID() AND (m.OBJECT_TYPE IN ('GLOBAL', 'COMMIT') "
	        "AND m.LOCK_TYPE = 'SHARED' OR m.OBJECT_SCHEMA = DATABASE() AND m.OBJECT_NAME = "
	        "'%sbiz_lock' AND m.LOCK_TYPE IN ('SHARED_READ_ONLY', 'SHARED_NO_WRITE', "
	        "'SHARED_NO_READ_WRITE', 'EXCLUSIVE')) LIMIT 1",
	        d->config->table_prefix);

	if (rc != BIZLOCK_OK)
		return;
	row = bl_rows_next(rows);
	if (row)
		bl_buf_addf(&f->text,
		            "; connection %s of %s has a lock, and has been as it is for %s s",
		            row[0] ? row[0] : "?", row[1] ? row[1] : "?", row[2] ? row[2] : "?");
	bl_rows_free(rows);
}

static void tell_failure(struct bl_doctor *d, struct bl_finding *f, const struct trial *t,
                         const struct bl_err *err)
{
	bl_buf_addf(&f->text, "could not be %s: %s", t->step, err->msg);
	if (!bl_waited_in_vain(err)) {
		bl_advise(f, BIZLOCK_BAD,
		          "do what the server asks for: until then no client gets one");
		return;
	}
	if (!d->server.mariadb)
		add_who_is_in_the_way(d, f);
	bl_advise(
	        f, BIZLOCK_BAD,
	        "let what has locked the table end, or end it: LOCK TABLES, FLUSH TABLES WITH READ "
	        "LOCK, a dump without --single-transaction, a stage of a backup, ALTER TABLE, or a "
	        "transaction of somebody else's in it; SHOW FULL PROCESSLIST shows it");
}

int bl_check_lock(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct trial trial = {.step = "tried"};
	struct bl_session *s = &d->session;
	bl_time since = bl_now();
	int rc;

	if (!d->fit)
		return BIZLOCK_OK; /* other findings say why */
	rc = begin_trial(d, &trial, err);
	s->sql = &trial.sql;
	if (rc == BIZLOCK_OK)
		rc = take(&trial, s, err);
	if (rc == BIZLOCK_OK)
		rc = renew(&trial, d->process, s, err);
	if (rc == BIZLOCK_OK)
		rc = give_back(&trial, s, err);
	if (trial.may_be_there)
		clean_up(d, &trial);
	bl_sql_free(&trial.sql);
	s->sql = NULL;
	if (rc == BIZLOCK_NOMEM || (rc != BIZLOCK_OK && bl_classify(err->native) == BL_CLASS_GONE))
		return rc;
	if (rc != BIZLOCK_OK)
		tell_failure(d, f, &trial, err);
	else
		bl_buf_addf(&f->text, "taken, renewed and released in %lld ms",
		            (long long)((bl_now() - since) / BL_NS_PER_MS));
	return BIZLOCK_OK;
}
