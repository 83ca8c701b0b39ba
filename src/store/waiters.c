#include "store/waiters.h"

#include <stdio.h>
#include <stdlib.h>

static void read_waiter(MYSQL_ROW row, struct bl_waiter *ret)
{
	ret->connection = row[0] ? strtoull(row[0], NULL, 10) : 0;
	snprintf(ret->user, sizeof(ret->user), "%s", row[1] ? row[1] : "");
	snprintf(ret->host, sizeof(ret->host), "%s", row[2] ? row[2] : "");
	ret->waited_ms = bl_rows_number(row[3]);
	snprintf(ret->bell, sizeof(ret->bell), "%s", row[4] ? row[4] : "");
}

int bl_waiters_read(struct bl_session *s, struct bl_waiters *ret, struct bl_err *err)
{
	struct bl_waiters found = {NULL, 0};
	struct bl_rows *rows;
	MYSQL_ROW row;
	size_t room;
	int rc = bl_session_query(s, bl_sql_waiters(s->sql), 5, &rows, err);

	if (rc != BIZLOCK_OK)
		return bl_err_wrap(err, "read the process list");
	room = rows->count;
	found.all = calloc(room + 1, sizeof(*found.all));
	if (!found.all)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	while (found.all && found.count < room && (row = bl_rows_next(rows)) != NULL)
		read_waiter(row, &found.all[found.count++]);
	bl_rows_free(rows);
	if (rc == BIZLOCK_OK)
		*ret = found;
	return rc;
}
