/* The doctor's checks of what this user may do, by trying it. */
#include <mysqld_error.h>
#include <stdio.h>

#include "store/bell.h"
#include "store/doctor_checks.h"
#include "store/errclass.h"
#include "store/grants.h"

/* Never run: a server looks at privileges when it prepares. */
static int may(struct bl_doctor *d, const char *table, enum bl_privilege privilege, bool *ret,
               struct bl_err *err)
{
	static const char *const begin[] = {"SELECT * FROM", "INSERT INTO", "UPDATE",
	                                    "DELETE FROM"};
	static const char *const end[] = {"WHERE FALSE", "(biz_id, biz_type) VALUES ('', '')",
	                                  "SET gmt_create = UTC_TIMESTAMP(6) WHERE FALSE",
	                                  "WHERE FALSE"};
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
	struct bl_need missing = {need->table, 0};

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
	bl_worse(f, BIZLOCK_BAD);
	bl_grants_one(&f->remedy, d->config, missing, d->account[0] ? d->account : "...");
}

/* A table that is missing is another finding. */
int bl_check_grants(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err)
{
	for (size_t i = 0; i < BL_NEEDS; i++) {
		struct bl_need missing = {NULL, 0};
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
		            d->server.galera ? ", among the clients of this node" : "");
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
