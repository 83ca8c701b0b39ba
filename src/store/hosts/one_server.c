#include "store/hosts/one_server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/hosts/failover.h"

/* A proxy that takes turns between two servers leads to the other one next. A proxy that prefers
 * the server with the fewest connections soon does, because all these connections stay until the
 * last is made. Where many clients connect at the same time, chance decides for each connection. */
#define DIALS 4

struct dials {
	struct bl_session sessions[DIALS];
	unsigned n;
};

/* The first connection that leads to this server, or, unless `same`, to any other. NULL: none. */
static struct bl_session *find(struct dials *d, const struct bl_config *config, const char *server,
                               bool same, struct bl_err *err)
{
	for (bl_err_clear(err); d->n < DIALS; d->n++) {
		struct bl_session *s = &d->sessions[d->n];

		if (bl_failover_connect_once(config, false, s, err) != BIZLOCK_OK)
			return NULL;
		if (s->server[0] && same == (strcmp(s->server, server) == 0)) {
			d->n++;
			return s;
		}
	}
	return NULL;
}

static struct dials *begin(struct bl_err *err)
{
	struct dials *d = calloc(1, sizeof(*d));

	if (!d)
		bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	return d;
}

static void end(struct dials *d)
{
	for (unsigned i = 0; i < d->n; i++)
		bl_session_close(&d->sessions[i]);
	free(d);
}

/* The server's group; "": none, or the server would not say. */
static void read_group(struct bl_session *s, char ret[64])
{
	static const char query[] = "SHOW GLOBAL VARIABLES LIKE 'group_replication_group_name'";
	struct bl_err ignored;
	struct bl_rows *rows;
	MYSQL_ROW row;

	ret[0] = '\0';
	if (bl_session_query(s, query, 2, &rows, &ignored) != BIZLOCK_OK)
		return;
	row = bl_rows_next(rows);
	snprintf(ret, 64, "%s", row && row[1] ? row[1] : "");
	bl_rows_free(rows);
}

static bool takes_writes(struct bl_session *s)
{
	struct bl_err ignored;

	return bl_session_takes_writes(s, &ignored) == BIZLOCK_OK;
}

static bool are_primaries_of_one_group(struct bl_session *s, struct bl_session *t)
{
	char group[64], other[64];

	read_group(s, group);
	read_group(t, other);
	return group[0] && strcmp(group, other) == 0 && takes_writes(s);
}

/* An error counts as a failover, in which connections fail as well. */
int bl_one_server_check(const struct bl_config *config, const char *before, struct bl_session *s,
                        bool *ret_shared, struct bl_err *err)
{
	struct dials *d = begin(err);
	struct bl_session *old = d ? find(d, config, before, true, err) : NULL;
	int rc = BIZLOCK_OK;

	if (!d)
		return BIZLOCK_NOMEM;
	*ret_shared = false;
	if (old && takes_writes(old)) {
		*ret_shared = are_primaries_of_one_group(s, old);
		if (!*ret_shared)
			rc = bl_err_set(err, BIZLOCK_CONN,
			                "connect: the address leads to two servers, %s and %s",
			                before, s->server);
	}
	end(d);
	return rc;
}

int bl_one_server_look(const struct bl_config *config, struct bl_session *s,
                       char ret_other[BL_IDENTITY_MAX + 1], struct bl_err *err)
{
	struct dials *d = begin(err);
	struct bl_session *other = d ? find(d, config, s->server, false, err) : NULL;
	int rc;

	if (!d)
		return BIZLOCK_NOMEM;
	rc = other ? BIZLOCK_OK : err->code;
	if (other && are_primaries_of_one_group(s, other))
		other = NULL;
	snprintf(ret_other, BL_IDENTITY_MAX + 1, "%s", other ? other->server : "");
	end(d);
	return rc;
}
