/* The doctor's checks of what this user may do, by trying it. */
#include <inttypes.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <string.h>

#include "store/bell/bell.h"
#include "store/doctor/doctor_checks.h"
#include "store/hosts/one_server.h"
#include "store/session/errclass.h"
#include "store/session/kill.h"
#include "store/table/grants.h"

/* The statement is never run: a server checks privileges when it prepares one. */
static int may(struct bl_doctor *d, const char *table, enum bl_privilege privilege, bool *ret,
               struct bl_err *err)
{
	static const char *const begin[] = {"SELECT * FROM", "INSERT INTO", "UPDATE",
	                                    "DELETE FROM"};
	static const char *const end[] = {"WHERE FALSE", "(biz_id, biz_type) VALUES ('', '')",
	                                  "SET biz_id = '' WHERE FALSE", "WHERE FALSE"};
	char text[256];
	int rc;

	snprintf(text, sizeof(text), "%s `%s%s` %s", begin[privilege], d->config->table_prefix,
	         table, end[privilege]);
	rc = bl_session_prepare(&d->session, text, err);
	*ret = rc == BIZLOCK_OK;
	return err->native == ER_TABLEACCESS_DENIED_ERROR ||
	                       err->native == ER_COLUMNACCESS_DENIED_ERROR
	               ? BIZLOCK_OK
	               : rc;
}

static int try_table(struct bl_doctor *d, const struct bl_need *need, struct bl_need *ret_missing,
                     struct bl_err *err)
{
	struct bl_need missing = {.table = need->table};

	for (unsigned i = 0; i < BL_PRIVILEGES; i++) {
		bool allowed = true;
		int rc = BIZLOCK_OK;

		bl_err_clear(err);
		if (need->privileges & 1u << i)
			rc = may(d, need->table, (enum bl_privilege)i, &allowed, err);
		if (rc != BIZLOCK_OK)
			return rc;
		if (!allowed)
			missing.privileges |= 1u << i;
	}
	*ret_missing = missing;
	return BIZLOCK_OK;
}

static void judge_table(struct bl_doctor *d, struct bl_finding *f, const struct bl_need *need,
                        const struct bl_need *missing)
{
	bl_buf_adds(&f->text, f->text.len > 0 ? "; " : "");
	bl_buf_adds(&f->text, missing->privileges ? "missing: " : "");
	bl_grants_list(&f->text, missing->privileges ? missing->privileges : need->privileges);
	bl_buf_addf(&f->text, " on %s%s", d->config->table_prefix, need->table);
	if (!missing->privileges)
		return;
	bl_worse(f, need->for_locks ? BIZLOCK_BAD : BIZLOCK_WARN);
	bl_grants_one(&f->remedy, d->config, missing, d->account[0] ? d->account : "...");
}

/* A table that is missing is another finding. */
int bl_check_grants(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	for (size_t i = 0; i < BL_NEEDS; i++) {
		struct bl_need missing = {.table = NULL};
		int rc = try_table(d, &bl_needs[i], &missing, err);

		if (rc == BIZLOCK_OK)
			judge_table(d, f, &bl_needs[i], &missing);
		else if (bl_classify(err->native) != BL_CLASS_MISSING)
			return rc;
	}
	return BIZLOCK_OK;
}

int bl_check_doorbell(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	int rc;

	if (!d->config->queue) {
		bl_buf_adds(&f->text, "not used: the option queue is off");
		bl_advise(f, BIZLOCK_WARN,
		          "set queue to auto: waiters poll, and come in any order");
		return BIZLOCK_OK;
	}
	rc = bl_bell_try(&d->session, err);
	if (rc == BIZLOCK_OK) {
		bl_buf_addf(&f->text, "GET_LOCK works%s",
		            d->server.several_primaries ? ", among the clients of this node" : "");
		return rc;
	}
	if (rc != BIZLOCK_DB)
		return rc;
	bl_buf_addf(&f->text, "GET_LOCK does not work: %s", err->msg);
	bl_advise(f, BIZLOCK_WARN,
	          "connect without what forbids it on the way; else waiters poll, and come in any "
	          "order");
	return BIZLOCK_OK;
}

/* Ends a statement of its own, found by a named lock, as a release finds watchers. */
static int try_wake_up(struct bl_doctor *d, uint64_t *ret_id, struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	struct bl_buf *text = &d->session.text;
	int rc = bl_doctor_query(d, 1, &rows, err, "SELECT IFNULL(IS_USED_LOCK('%s'), 0)",
	                         d->session.mark.name);

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	*ret_id = row ? bl_rows_u64(row[0]) : 0;
	bl_rows_free(rows);
	bl_buf_reset(text);
	bl_kill_add(text, "KILL QUERY", d->session.mark.name, *ret_id);
	return bl_session_run_text(&d->session, NULL, err);
}

/* Without doorbells nobody watches: the finding `doorbell` tells of that. */
int bl_check_watching(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	uint64_t id = 0;
	int rc;

	if (!d->config->queue || !d->session.mark.name[0])
		return BIZLOCK_OK;
	if (d->config->max_connections < 4) {
		bl_buf_addf(&f->text, "not used: the option max_connections is %" PRIu32,
		            d->config->max_connections);
		bl_advise(f, BIZLOCK_WARN,
		          "set max_connections to 4 or more: waiters that get no connection poll");
		return BIZLOCK_OK;
	}
	rc = try_wake_up(d, &id, err);
	if (rc != BIZLOCK_OK && rc != BIZLOCK_DB)
		return rc;
	if (rc == BIZLOCK_DB && bl_classify(err->native) == BL_CLASS_STOPPED) {
		bl_buf_adds(&f->text, "KILL QUERY works, among connections of this user");
		return BIZLOCK_OK;
	}
	bl_buf_addf(&f->text, "KILL QUERY %" PRIu64 " does not work: %s", id,
	            rc == BIZLOCK_OK ? "the statement was not ended" : err->msg);
	bl_advise(f, BIZLOCK_WARN,
	          "connect without what forbids it on the way; else a client that waits for more "
	          "keys "
	          "than it has connections looks at them up to a second late");
	return BIZLOCK_OK;
}

/* ---- what stands between ------------------------------------------------------------------ */

/* Which connection of the server runs a statement, and which one has our mark. 0: none. */
static int ask_which(struct bl_doctor *d, uint64_t *ret_id, uint64_t *ret_marked,
                     struct bl_err *err)
{
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 2, &rows, err, "SELECT CONNECTION_ID(), IS_USED_LOCK('%s')",
	                         d->session.mark.name[0] ? d->session.mark.name : "bizlock:none");

	if (rc != BIZLOCK_OK)
		return rc;
	row = bl_rows_next(rows);
	*ret_id = row ? bl_rows_u64(row[0]) : 0;
	*ret_marked = row ? bl_rows_u64(row[1]) : 0;
	bl_rows_free(rows);
	return rc;
}

#define TURN_OFF                                                                                   \
	"turn off what shares connections on the way (connection_sharing of MySQL Router, "        \
	"multiplexing of ProxySQL), or connect past it: "

/* Statements of one connection have to stay together: another one has neither the settings nor the
 * named locks. A proxy that keeps them together while it sees a named lock does no harm. */
static int check_sharing(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	const struct bl_mark *mark = &d->session.mark;
	uint64_t first = mark->name[0] ? mark->id : 0;

	for (int i = 0; i < 3; i++) {
		uint64_t id = 0, marked = 0;
		int rc = ask_which(d, &id, &marked, err);

		if (rc != BIZLOCK_OK)
			return rc;
		first = first ? first : id;
		if (id == first && (!mark->name[0] || marked == id))
			continue;
		bl_buf_addf(&f->text,
		            "a statement ran on connection %" PRIu64 " of the server, and one "
		            "before it on %" PRIu64,
		            id, first);
		bl_advise(f, BIZLOCK_BAD, TURN_OFF "settings and doorbells are a connection's own");
		return BIZLOCK_OK;
	}
	bl_buf_adds(&f->text, "statements of a connection stay together");
	return BIZLOCK_OK;
}

static int check_one_server(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	char other[BL_IDENTITY_MAX + 1];
	int rc;

	if (d->refused.code != BIZLOCK_OK || d->server.galera || !d->session.server[0] ||
	    bl_hosts_several(d->config->host))
		return BIZLOCK_OK;
	rc = bl_one_server_look(d->config, &d->session, other, err);
	if (rc != BIZLOCK_OK)
		return rc;
	if (!other[0]) {
		bl_buf_adds(&f->text, ", and all connections lead to one server");
		return rc;
	}
	bl_buf_addf(&f->text, ", but connections lead to %s and to %s", d->session.server, other);
	bl_advise(f, BIZLOCK_BAD,
	          "let the address lead to one server, and to another only when that is down: each "
	          "of "
	          "them would give the same lock");
	return rc;
}

int bl_check_proxy(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	int rc = bl_server_try_packet(&d->session, err);

	if (rc == BIZLOCK_UNSUPPORTED) {
		bl_buf_adds(&f->text, err->msg);
		bl_advise(f, BIZLOCK_BAD, TURN_OFF "a release is two statements");
		return BIZLOCK_OK;
	}
	if (rc == BIZLOCK_OK)
		rc = check_sharing(d, f, err);

	return rc == BIZLOCK_OK ? check_one_server(d, f, err) : rc;
}
