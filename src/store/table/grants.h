/* Which privileges bizlock needs, and the statements that grant them. */
#ifndef BL_STORE_TABLE_GRANTS_H
#define BL_STORE_TABLE_GRANTS_H

#include "core/config.h"
#include "store/session/session.h"

enum bl_privilege { BL_PRIV_SELECT, BL_PRIV_INSERT, BL_PRIV_UPDATE, BL_PRIV_DELETE };
#define BL_PRIVILEGES 4

/* Needed on each table; a bit for each privilege. */
struct bl_need {
	const char *table; /* without the prefix */
	unsigned privileges;
	bool for_locks; /* without it there are no locks; else only runs are not recorded */
};
enum bl_table { BL_TABLE_LOCK, BL_TABLE_ROW_LOCK, BL_TABLE_SCHEMA, BL_TABLE_RUN };
#define BL_NEEDS 4
extern const struct bl_need bl_needs[BL_NEEDS]; /* by bl_table */

/* "SELECT, DELETE" */
void bl_grants_list(struct bl_buf *ret, unsigned privileges);

/* account: name@host, split at the last '@', because a name may have one; without '@' the host is
 * %. */
void bl_grants_account(struct bl_buf *ret, const char *account);

/* One statement, without its end. */
void bl_grants_one(struct bl_buf *ret, const struct bl_config *config, const struct bl_need *need,
                   const char *account);

#endif
