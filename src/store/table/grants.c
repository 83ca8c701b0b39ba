#include "store/table/grants.h"

#include <string.h>

#define ALL 15u
#define ALL_BUT_DELETE (ALL & ~(1u << BL_PRIV_DELETE))

const struct bl_need bl_needs[BL_NEEDS] = {
        [BL_TABLE_LOCK] = {"biz_lock", ALL, true},
        [BL_TABLE_ROW_LOCK] = {"biz_row_lock", ALL, true},
        [BL_TABLE_SCHEMA] = {"biz_lock_schema", 1u << BL_PRIV_SELECT, true},
        [BL_TABLE_RUN] = {"biz_run", ALL_BUT_DELETE, false},
};

void bl_grants_list(struct bl_buf *ret, unsigned privileges)
{
	static const char *const names[] = {"SELECT", "INSERT", "UPDATE", "DELETE"};
	const char *comma = "";

	for (unsigned i = 0; i < BL_PRIVILEGES; i++) {
		if (!(privileges & 1u << i))
			continue;
		bl_buf_addf(ret, "%s%s", comma, names[i]);
		comma = ", ";
	}
}

void bl_grants_account(struct bl_buf *ret, const char *account)
{
	const char *at = strrchr(account, '@');
	const char *host = at ? at + 1 : "%";

	bl_sql_name(ret, account, at ? (size_t)(at - account) : strlen(account));
	bl_buf_adds(ret, "@");
	bl_sql_name(ret, host, strlen(host));
}

void bl_grants_one(struct bl_buf *ret, const struct bl_config *config, const struct bl_need *need,
                   const char *account)
{
	bl_buf_adds(ret, "GRANT ");
	bl_grants_list(ret, need->privileges);
	bl_buf_adds(ret, " ON ");
	bl_sql_name(ret, config->database, strlen(config->database));
	bl_buf_addf(ret, ".`%s%s` TO ", config->table_prefix, need->table);
	bl_grants_account(ret, account);
}
