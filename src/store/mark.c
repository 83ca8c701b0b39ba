/* The mark of a connection: a named lock by which another connection of the client can find it, to
 * end it. */
#include <stdio.h>
#include <string.h>

#include "base/rnd.h"
#include "store/session.h"

#define IDLE_MAX_S (365 * 24 * 3600) /* of wait_timeout, by the servers' manuals */

/* And how long the connection may be idle, and where it leads. Where there are no named locks,
 * nothing is lost with a connection. */
int bl_session_mark(struct bl_session *s, struct bl_err *err)
{
	struct bl_mark *mark = &s->mark;
	uint8_t number[16];
	int64_t id, idle_s;
	struct bl_rows *rows;
	MYSQL_ROW row;
	int rc;

	if (!bl_random_bytes(number, sizeof(number)))
		return BIZLOCK_OK;
	snprintf(mark->name, sizeof(mark->name), "bizlock:");
	for (size_t i = 0, at = strlen(mark->name); i < sizeof(number); i++, at += 2)
		snprintf(mark->name + at, sizeof(mark->name) - at, "%02x", number[i]);
	bl_buf_reset(&s->text);
	bl_buf_addf(
	        &s->text,
	        "SELECT GET_LOCK('%s', 0) * CONNECTION_ID(), @@SESSION.wait_timeout, " BL_IDENTITY
	        ", @@SESSION.max_allowed_packet",
	        mark->name);
	rc = bl_session_query_text(s, 4, &rows, err);
	row = rc == BIZLOCK_OK ? bl_rows_next(rows) : NULL;
	id = row ? bl_rows_number(row[0]) : 0;
	idle_s = row ? bl_rows_number(row[1]) : 0;
	s->packet_max = row ? bl_rows_u64(row[3]) : 0;
	snprintf(s->server, sizeof(s->server), "%s", row && row[2] ? row[2] : "");
	if (rc == BIZLOCK_OK)
		bl_rows_free(rows);
	mark->id = (uint64_t)id;
	if (id <= 0)
		mark->name[0] = '\0';
	if (idle_s > 0 && idle_s <= IDLE_MAX_S)
		s->idle_max = idle_s * 1000 * BL_NS_PER_MS;
	return s->gone || rc == BIZLOCK_NOMEM ? rc : BIZLOCK_OK;
}
