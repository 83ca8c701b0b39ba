/* The doctor's checks of a server that is one of a cluster. */
#include <mysqld_error.h>
#include <strings.h>

#include "store/doctor/doctor_checks.h"
#include "store/table/grants.h"

/* ---- Galera ------------------------------------------------------------------------ */

struct node {
	bool ready, primary, synced;
};

static void note_status(struct node *n, struct bl_finding *f, const char *name, const char *value)
{
	n->ready |= strcasecmp(name, "wsrep_ready") == 0 && strcasecmp(value, "ON") == 0;
	n->primary |=
	        strcasecmp(name, "wsrep_cluster_status") == 0 && strcasecmp(value, "Primary") == 0;
	n->synced |= strcasecmp(name, "wsrep_local_state_comment") == 0 &&
	             strcasecmp(value, "Synced") == 0;
	bl_buf_addf(&f->text, ", %s=%s", name, value);
}

int bl_check_galera(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct node node = {false, false, false};
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	if (!d->server.galera) {
		bl_buf_adds(&f->text, "not a node of a cluster");
		return BIZLOCK_OK;
	}
	rc = bl_doctor_query(d, 2, &rows, err,
	                     "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', "
	                     "'wsrep_cluster_status', 'wsrep_local_state_comment', "
	                     "'wsrep_cluster_size')");
	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_adds(&f->text, "a node");
	while ((row = bl_rows_next(rows)) != NULL)
		note_status(&node, f, row[0] ? row[0] : "", row[1] ? row[1] : "");
	bl_rows_free(rows);
	d->fit &= node.ready && node.primary;
	if (!node.ready || !node.primary)
		bl_advise(f, BIZLOCK_BAD, "use another node, or bring this one back");
	else if (!node.synced)
		bl_advise(f, BIZLOCK_WARN, "use a node that is synced, or wait until it is");
	return BIZLOCK_OK;
}

/* ---- group replication ------------------------------------------------------------- */

struct members {
	unsigned all, online; /* that this one knows of */
	bool is_online;       /* this one */
};

static void note_member(struct members *m, struct bl_finding *f, MYSQL_ROW row)
{
	bool self = row[0] && row[0][0] == '1';
	const char *state = row[1] ? row[1] : "", *role = row[2] ? row[2] : "";
	bool online = strcasecmp(state, "ONLINE") == 0;

	m->all++;
	m->online += online;
	m->is_online |= self && online;
	bl_buf_addf(&f->text, "%s%s%s%s%s", f->text.len > 0 ? ", " : "", self ? "this one " : "",
	            state, role[0] ? " " : "", role);
}

/* How many more members may be lost before the others have no majority. */
static int spare(const struct members *m)
{
	return (int)m->online - (int)m->all / 2 - 1;
}

static void judge_members(struct bl_finding *f, const struct members *m)
{
	if (!m->is_online)
		bl_advise(f, BIZLOCK_BAD,
		          "use another member, or bring this one back by START GROUP_REPLICATION");
	else if (spare(m) < 0)
		bl_advise(f, BIZLOCK_BAD,
		          "use a member that is in touch with the majority, or bring the others "
		          "back: this one can commit nothing");
	else if (spare(m) < 1)
		bl_advise(f, BIZLOCK_WARN,
		          "bring back or add members, until the group has three or more: when it "
		          "loses one more, it takes no writes");
}

static int ask_members(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	struct members members = {0, 0, false};
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc = bl_doctor_query(d, 3, &rows, err,
	                         "SELECT MEMBER_ID = @@server_uuid, MEMBER_STATE, MEMBER_ROLE FROM "
	                         "performance_schema.replication_group_members ORDER BY 1 DESC");

	if (rc == BIZLOCK_DB && err->native == ER_TABLEACCESS_DENIED_ERROR) {
		bl_buf_adds(&f->text, "a member, in a state that this user may not see");
		bl_advise(f, BIZLOCK_WARN,
		          "GRANT SELECT ON performance_schema.replication_group_members TO ");
		bl_grants_account(&f->remedy, d->account[0] ? d->account : "...");
		return BIZLOCK_OK;
	}
	if (rc != BIZLOCK_OK)
		return rc;
	while ((row = bl_rows_next(rows)) != NULL)
		note_member(&members, f, row);
	bl_rows_free(rows);
	judge_members(f, &members);
	d->fit &= f->level < BIZLOCK_BAD; /* without a majority a commit does not end */
	return BIZLOCK_OK;
}

static int ask_consistency(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	char level[64];
	int rc = bl_session_ask_word(&d->session, "SELECT @@global.group_replication_consistency",
	                             level, sizeof(level), err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_addf(&f->text, ", group_replication_consistency=%s", level);
	if (strcasecmp(level, "EVENTUAL") == 0)
		bl_advise(f, BIZLOCK_WARN,
		          "set group_replication_consistency to BEFORE_ON_PRIMARY_FAILOVER, as "
		          "bizlock does for its own sessions: in yours a new primary may answer "
		          "before it has applied what the old one had committed");
	return BIZLOCK_OK;
}

int bl_check_group(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	int rc;

	if (!d->server.group) {
		bl_buf_adds(&f->text, "not a member of a group");
		return BIZLOCK_OK;
	}
	rc = ask_members(d, f, err);
	if (rc != BIZLOCK_OK)
		return rc;
	bl_buf_adds(&f->text,
	            d->server.several_primaries ? "; several primaries" : "; one primary");
	return ask_consistency(d, f, err);
}
