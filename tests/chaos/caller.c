#define _GNU_SOURCE 1
#include "caller.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db.h"
#include "patience.h"

#define HOSTS 3
#define ANSWER_S 2     /* the connectors wait for an answer for this long, or twice as long */
#define SLICE_MS 500   /* of a wait: a server that has gone is noticed after it */
#define LAST_MS 4000   /* before the end of a wait no other call is begun */
#define REFUSED_MS 100 /* from one host that does not serve to the next */

struct caller {
	char hosts[HOSTS][64];
	unsigned ports[HOSTS], at;
	const char *option_file, *user, *schema;
	char owner[32];
	MYSQL *db; /* NULL: not connected */
	bizlock_key key;
	uint64_t fence;
	int64_t lease_ms, renewed_ms; /* the lease began after that, by now_ms() */
};

struct caller *caller_new(const char *hosts, const char *option_file, const char *user,
                          const char *schema, unsigned number)
{
	struct caller *c = calloc(1, sizeof(*c));

	if (!c || sscanf(hosts, "%63[^:]:%u,%63[^:]:%u,%63[^:]:%u", c->hosts[0], &c->ports[0],
	                 c->hosts[1], &c->ports[1], c->hosts[2], &c->ports[2]) != 2 * HOSTS)
		die("no list of hosts: %s", hosts);
	c->option_file = option_file;
	c->user = user;
	c->schema = schema;
	snprintf(c->owner, sizeof(c->owner), "caller-%u-%d", number, (int)getpid());
	return c;
}

void caller_free(struct caller *c)
{
	if (c && c->db)
		mysql_close(c->db);
	free(c);
}

static void leave_host(struct caller *c)
{
	mysql_close(c->db);
	c->db = NULL;
	c->at = (c->at + 1) % HOSTS;
	pause_ms(REFUSED_MS);
}

static bool connect_somewhere(struct caller *c)
{
	unsigned s = ANSWER_S;

	if (c->db)
		return true;
	c->db = mysql_init(NULL);
	mysql_options(c->db, MYSQL_READ_DEFAULT_FILE, c->option_file);
	mysql_options(c->db, MYSQL_OPT_CONNECT_TIMEOUT, &s);
	mysql_options(c->db, MYSQL_OPT_READ_TIMEOUT, &s);
	if (mysql_real_connect(c->db, c->hosts[c->at], c->user, NULL, c->schema, c->ports[c->at],
	                       NULL, 0))
		return true;
	leave_host(c);
	return false;
}

/* Whatever goes wrong, another host may serve: a connection that is lost, a server that takes no
 * writes or is full, a table that is locked. */
static bool call(struct caller *c, const char *statement)
{
	if (connect_somewhere(c) && db_try(c->db, "%s", statement))
		return true;
	if (c->db)
		leave_host(c);
	return false;
}

/* The number that a query of one field returns; -1: none. */
static int64_t ask(struct caller *c, const char *query)
{
	MYSQL_RES *rows = mysql_query(c->db, query) == 0 ? mysql_store_result(c->db) : NULL;
	MYSQL_ROW row = rows ? mysql_fetch_row(rows) : NULL;
	int64_t ret = row && row[0] ? strtoll(row[0], NULL, 10) : -1;

	mysql_free_result(rows);
	return ret;
}

/* Makes the call, and asks for a variable that it sets. -1: there was no answer, or it was NULL. */
static int64_t call_for(struct caller *c, const char *query, const char *statement)
{
	return call(c, statement) ? ask(c, query) : -1;
}

int caller_take(struct caller *c, bizlock_key key, int64_t lease_ms, int64_t wait_ms,
                uint64_t *ret_fence)
{
	int64_t end = now_ms() + wait_ms - LAST_MS;
	char wait[256], try[256];

	snprintf(wait, sizeof(wait), "CALL biz_lock_wait('%s', '%s', %d)", key.biz_type, key.biz_id,
	         SLICE_MS);
	snprintf(try, sizeof(try),
	         "CALL biz_lock_try('%s', '%s', '%s', %" PRId64 ", @fence, @holder, @left_ms)",
	         key.biz_type, key.biz_id, c->owner, lease_ms);
	while (now_ms() < end) {
		int64_t asked_ms, fence;

		if (!call(c, wait))
			continue;
		asked_ms = now_ms();
		fence = call_for(c, "SELECT @fence", try);
		if (fence <= 0)
			continue;
		c->key = key;
		c->fence = (uint64_t)fence;
		c->lease_ms = lease_ms;
		c->renewed_ms = asked_ms;
		*ret_fence = c->fence;
		return BIZLOCK_OK;
	}
	return BIZLOCK_TIMEOUT;
}

static int64_t left_ms(const struct caller *c)
{
	int64_t left = c->renewed_ms + c->lease_ms - now_ms();

	return left > 0 ? left : 0;
}

int64_t caller_left_ms(struct caller *c)
{
	int64_t asked_ms = now_ms(), ok;
	char text[256];

	if (left_ms(c) == 0 || asked_ms - c->renewed_ms < c->lease_ms / 3)
		return left_ms(c);
	snprintf(text, sizeof(text),
	         "CALL biz_lock_renew('%s', '%s', '%s', %" PRIu64 ", %" PRId64 ", @ok)",
	         c->key.biz_type, c->key.biz_id, c->owner, c->fence, c->lease_ms);
	ok = call_for(c, "SELECT @ok", text);
	if (ok == 0)
		c->lease_ms = 0;
	else if (ok == 1)
		c->renewed_ms = asked_ms;
	return left_ms(c);
}

/* While the lease lasts nobody else can have got the lock: so a release that is answered by "lost"
 * then was done by one before, whose answer was lost. */
int caller_release(struct caller *c)
{
	bool unanswered = false;
	char text[256];

	snprintf(text, sizeof(text), "CALL biz_lock_release('%s', '%s', '%s', %" PRIu64 ", @ok)",
	         c->key.biz_type, c->key.biz_id, c->owner, c->fence);
	do {
		int64_t ok = call_for(c, "SELECT @ok", text);

		if (ok == 1 || (ok == 0 && unanswered && left_ms(c) > 0))
			return BIZLOCK_OK;
		if (ok == 0)
			return BIZLOCK_LOST;
		unanswered = true;
	} while (left_ms(c) > 0);
	return BIZLOCK_LOST;
}
