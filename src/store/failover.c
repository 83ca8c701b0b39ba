#include "store/failover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hosts.h"
#include "store/one_server.h"
#include "store/race.h"

static unsigned count_hosts(const char *list)
{
	unsigned n = 0;

	do {
		bl_hosts_next(&list);
		n++;
	} while (list && *list);
	return n;
}

int bl_failover_init(struct bl_failover *f, const struct bl_config *config, struct bl_err *err)
{
	unsigned n = count_hosts(config->host);
	struct bl_target *targets = calloc(n, sizeof(*targets));
	const char *at = config->host;

	*f = (struct bl_failover){
	        .config = config, .io_ms = bl_config_answer_ms(config), .targets = targets, .n = n};
	if (!targets || bl_cond_init(&f->ended) != 0) {
		free(targets);
		f->targets = NULL;
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	}
	for (unsigned i = 0; i < n; i++)
		targets[i].host = bl_hosts_next(&at);
	pthread_mutex_init(&f->mu, NULL);
	return BIZLOCK_OK;
}

void bl_failover_free(struct bl_failover *f, bool forked)
{
	if (!f->targets)
		return;
	if (!forked) {
		pthread_mutex_lock(&f->mu);
		while (f->dials > 0)
			pthread_cond_wait(&f->ended, &f->mu);
		pthread_mutex_unlock(&f->mu);
		if (f->any_ended)
			pthread_join(f->ended_last, NULL);
		pthread_cond_destroy(&f->ended);
		pthread_mutex_destroy(&f->mu);
	}
	free(f->targets);
	f->targets = NULL;
}

void bl_failover_leads_to(struct bl_failover *f, const char *server)
{
	pthread_mutex_lock(&f->mu);
	snprintf(f->server, sizeof(f->server), "%s", server);
	pthread_mutex_unlock(&f->mu);
}

void bl_failover_server(struct bl_failover *f, char ret[BL_IDENTITY_MAX + 1])
{
	pthread_mutex_lock(&f->mu);
	memcpy(ret, f->server, sizeof(f->server));
	pthread_mutex_unlock(&f->mu);
}

/* Its address may be that of a proxy. */
static int connect_to_the_only_one(struct bl_failover *f, struct bl_session *ret,
                                   struct bl_err *err)
{
	char before[BL_IDENTITY_MAX + 1];
	bool shared;
	int rc = bl_session_open(ret, f->config, &f->targets[0].host, f->in_group, f->io_ms, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_failover_server(f, before);
	if (!before[0] || !ret->server[0] || strcmp(before, ret->server) == 0)
		return BIZLOCK_OK;
	rc = bl_one_server_check(f->config, before, ret, &shared, err);
	if (rc == BIZLOCK_OK)
		bl_failover_leads_to(f, shared ? "" : ret->server);
	else
		bl_session_close(ret);
	return rc;
}

int bl_failover_connect(struct bl_failover *f, const struct bl_sql *sql, struct bl_session *ret,
                        struct bl_err *err)
{
	int rc = f->n > 1 ? bl_race(f, ret, err) : connect_to_the_only_one(f, ret, err);

	if (rc == BIZLOCK_OK)
		ret->sql = sql;
	return rc;
}

int bl_failover_connect_once(const struct bl_config *config, struct bl_session *ret,
                             struct bl_err *err)
{
	struct bl_failover f;
	int rc = bl_failover_init(&f, config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	f.io_ms = config->io_timeout_ms;
	rc = bl_failover_connect(&f, NULL, ret, err);
	bl_failover_free(&f, false);
	return rc;
}

/* ---- what sessions find ------------------------------------------------------------------ */

/* The only host needs no notes. */
static struct bl_target *target_of(const struct bl_failover *f, const struct bl_session *s)
{
	for (unsigned i = 0; i < f->n; i++)
		if (s->host == &f->targets[i].host)
			return &f->targets[i];
	return NULL;
}

static void note_time(struct bl_failover *f, bl_time *at)
{
	pthread_mutex_lock(&f->mu);
	*at = bl_now();
	pthread_mutex_unlock(&f->mu);
}

static bool noted_since(struct bl_failover *f, const bl_time *at, bl_time since)
{
	bool noted;

	pthread_mutex_lock(&f->mu);
	noted = *at > since;
	pthread_mutex_unlock(&f->mu);
	return noted;
}

void bl_failover_note(struct bl_failover *f, const struct bl_session *s)
{
	struct bl_target *t = target_of(f, s);

	if (t)
		note_time(f, &t->standing.noted_at);
}

bool bl_failover_noted_since(struct bl_failover *f, const struct bl_session *s, bl_time since)
{
	const struct bl_target *t = target_of(f, s);

	return t && noted_since(f, &t->standing.noted_at, since);
}

bool bl_failover_silent_since(struct bl_failover *f, const struct bl_session *s, bl_time since)
{
	const struct bl_target *t = target_of(f, s);
	bool silent;

	if (!t)
		return false;
	pthread_mutex_lock(&f->mu);
	silent = t->standing.noted_at > since && t->standing.noted_at > t->heard_at;
	pthread_mutex_unlock(&f->mu);
	return silent;
}

void bl_failover_heard(struct bl_failover *f, const struct bl_session *s)
{
	struct bl_target *t = target_of(f, s);

	if (t)
		note_time(f, &t->heard_at);
}

bool bl_failover_heard_since(struct bl_failover *f, const struct bl_session *s, bl_time since)
{
	const struct bl_target *t = target_of(f, s);

	return !t || noted_since(f, &t->heard_at, since);
}

/* Not sooner than after BL_LATELY_NS: two hosts that are slow by turns must not cost a connection
 * for each statement. */
bool bl_failover_prefers_another(struct bl_failover *f, const struct bl_session *s, bl_time since)
{
	const struct bl_target *t = target_of(f, s);
	bl_time now = bl_now();
	bool prefers = false;

	if (!t || now < since + BL_LATELY_NS)
		return false;
	pthread_mutex_lock(&f->mu);
	for (const struct bl_target *other = f->targets; other < t && !prefers; other++)
		prefers = !bl_standing_is_last(&other->standing, now);
	pthread_mutex_unlock(&f->mu);
	return prefers;
}
