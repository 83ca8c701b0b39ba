/* By its mark a connection is known to others of the client's, which may have to end it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rnd.h"
#include "store/session.h"

#define IDLE_MAX_S (365 * 24 * 3600) /* of wait_timeout, by the servers' manuals */

/* And how long the connection may be idle. Where there are no named locks, nothing is lost
 * with a connection. */
int bl_session_mark(struct bl_session *s, struct bl_err *err)
{
	struct bl_mark *mark = &s->mark;
	uint8_t number[16];
	int64_t id, idle_s;
	MYSQL_RES *rows;
	MYSQL_ROW row;
	int rc;

	if (!bl_random_bytes(number, sizeof(number)))
		return BIZLOCK_OK;
	snprintf(mark->name, sizeof(mark->name), "bizlock:");
	for (size_t i = 0, at = strlen(mark->name); i < sizeof(number); i++, at += 2)
		snprintf(mark->name + at, sizeof(mark->name) - at, "%02x", number[i]);
	bl_buf_reset(&s->text);
	bl_buf_addf(&s->text, "SELECT GET_LOCK('%s', 0) * CONNECTION_ID(), @@SESSION.wait_timeout",
	            mark->name);
	if (s->text.failed)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	rc = bl_session_query(s, s->text.data, 2, &rows, err);
	row = rc == BIZLOCK_OK ? mysql_fetch_row(rows) : NULL;
	id = row && row[0] ? strtoll(row[0], NULL, 10) : 0;
	idle_s = row && row[1] ? strtoll(row[1], NULL, 10) : 0;
	if (rc == BIZLOCK_OK)
		mysql_free_result(rows);
	mark->id = (uint64_t)id;
	if (id <= 0)
		mark->name[0] = '\0';
	if (idle_s > 0 && idle_s <= IDLE_MAX_S)
		s->idle_max = idle_s * 1000 * BL_NS_PER_MS;
	return rc == BIZLOCK_CONN ? rc : BIZLOCK_OK;
}
