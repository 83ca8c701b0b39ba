#include "store/hosts/failover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hosts.h"
#include "store/hosts/one_server.h"
#include "store/hosts/race.h"
#include "store/session/errclass.h"

static unsigned count_hosts(const char *list)
{
	unsigned n = 0;

	do {
		bl_hosts_next(&list);
		n++;
	} while (list && *list);
	return n;
}

struct bl_old_password {
	struct bl_old_password *next;
	char *text;
};

static void forget(char *password)
{
	if (password)
		explicit_bzero(password, strlen(password));
	free(password);
}

static void free_all(struct bl_failover *f, bool forked)
{
	for (struct bl_old_password *old; (old = f->old_passwords) != NULL; free(old)) {
		f->old_passwords = old->next;
		forget(old->text);
	}
	if (!forked) {
		pthread_cond_destroy(&f->ended);
		pthread_mutex_destroy(&f->mu);
	}
	bl_config_free(&f->config);
	free(f->targets);
	free(f);
}

int bl_failover_new(struct bl_failover **ret, const struct bl_config *config, struct bl_err *err)
{
	unsigned n = count_hosts(config->host);
	struct bl_failover *f = calloc(1, sizeof(*f));
	struct bl_target *targets = calloc(n, sizeof(*targets));
	const char *at = config->host;

	if (!f || !targets || bl_cond_init(&f->ended) != 0) {
		free(targets);
		free(f);
		bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
		return BIZLOCK_NOMEM;
	}
	for (unsigned i = 0; i < n; i++)
		targets[i].host = bl_hosts_next(&at);
	f->io_ms = bl_config_answer_ms(config);
	f->targets = targets;
	f->n = n;
	pthread_mutex_init(&f->mu, NULL);
	if (bl_config_copy(&f->config, config, err) != BIZLOCK_OK) {
		free_all(f, false);
		return BIZLOCK_NOMEM;
	}
	*ret = f;
	return BIZLOCK_OK;
}

/* Waits for dials. True: some are still under way. */
static bool leave(struct bl_failover *f)
{
	bl_time until;
	bool left;

	pthread_mutex_lock(&f->mu);
	until = f->dialed_at + bl_config_connect_ns(&f->config);
	while (f->dials > 0 && !f->stopped && !bl_passed(until))
		bl_cond_wait_until(&f->ended, &f->mu, until);
	left = f->left = f->dials > 0;
	pthread_mutex_unlock(&f->mu);
	return left;
}

void bl_failover_free(struct bl_failover *f, bool forked)
{
	if (!f || (!forked && leave(f)))
		return;
	if (!forked && f->any_ended)
		pthread_join(f->ended_last, NULL);
	free_all(f, forked);
}

/* Each thread joins the thread that ended before it, and bl_failover_free() joins the last one: so
 * no thread is in the library any more when the library may be unloaded. If dials did not end in
 * time, the last of them frees everything, and nobody joins its thread. */
void bl_failover_dialed(struct bl_failover *f)
{
	pthread_t before;
	bool any, last;

	pthread_mutex_lock(&f->mu);
	f->dials--;
	last = f->left && f->dials == 0;
	any = f->any_ended;
	before = f->ended_last;
	f->any_ended = true;
	f->ended_last = pthread_self();
	pthread_cond_broadcast(&f->ended);
	pthread_mutex_unlock(&f->mu);
	if (any)
		pthread_join(before, NULL);
	if (!last)
		return;
	pthread_detach(pthread_self());
	free_all(f, false);
}

void bl_failover_stop(struct bl_failover *f)
{
	pthread_mutex_lock(&f->mu);
	f->stopped = true;
	pthread_cond_broadcast(&f->ended);
	pthread_mutex_unlock(&f->mu);
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

/* The address of the only host may be a proxy's, with several servers behind it. */
static int dial_the_only_one(struct bl_failover *f, const struct bl_config *config, bool in_group,
                             struct bl_session *ret, struct bl_err *err)
{
	char before[BL_IDENTITY_MAX + 1];
	bool shared;
	int rc = bl_session_open(ret, config, &f->targets[0].host, in_group, f->io_ms, err);

	if (rc != BIZLOCK_OK)
		return rc;
	bl_failover_server(f, before);
	if (!before[0] || !ret->server[0] || strcmp(before, ret->server) == 0)
		return BIZLOCK_OK;
	rc = bl_one_server_check(config, before, ret, &shared, err);
	if (rc == BIZLOCK_OK)
		bl_failover_leads_to(f, shared ? "" : ret->server);
	else
		bl_session_close(ret);
	return rc;
}

int bl_failover_dial(struct bl_failover *f, const struct bl_config *config,
                     const struct bl_host *host, bool in_group, struct bl_session *ret,
                     struct bl_err *err)
{
	if (f->any)
		return bl_session_reach(ret, config, host, err);
	return f->n > 1 ? bl_session_open(ret, config, host, in_group, f->io_ms, err)

	                : dial_the_only_one(f, config, in_group, ret, err);
}

/* ---- the password ------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

int bl_failover_password(struct bl_failover *f, const char *password, struct bl_err *err)
{
	struct bl_old_password *old = malloc(sizeof(*old));
	char *text = password ? strdup(password) : NULL;
	bool changed;

	if (!old || (password && !text)) {
		free(old);
		forget(text);
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	}
	pthread_mutex_lock(&f->mu);
	changed = !same_text(f->config.password, text);
	if (changed) {
		*old = (struct bl_old_password){f->old_passwords, f->config.password};
		f->old_passwords = old;
		f->config.password = text;
		f->passwords++;
	}
	pthread_mutex_unlock(&f->mu);
	if (!changed) {
		free(old);
		forget(text);
	}
	return BIZLOCK_OK;
}

struct bl_config bl_failover_config(struct bl_failover *f)
{
	struct bl_config now;

	pthread_mutex_lock(&f->mu);
	now = f->config;
	pthread_mutex_unlock(&f->mu);
	return now;
}

static unsigned count_passwords(struct bl_failover *f)
{
	unsigned n;

	pthread_mutex_lock(&f->mu);
	n = f->passwords;
	pthread_mutex_unlock(&f->mu);
	return n;
}

static void trace_connect(const struct bl_failover *f, const struct bl_session *s, int rc,
                          const struct bl_err *err)
{
	if (rc != BIZLOCK_OK)
		BL_TRACE(f->trace, NULL, NULL, "not connected: %s", err->msg);
	else
		BL_TRACE(f->trace, NULL, NULL, "connection %" PRIu64 " to %s opened", s->mark.id,
		         bl_failover_name(f, s));
}

int bl_failover_connect(struct bl_failover *f, const struct bl_sql *sql, bl_time until,
                        struct bl_session *ret, struct bl_err *err)
{
	unsigned password = count_passwords(f);
	int rc = bl_race(f, until, ret, err);

	if (rc == BIZLOCK_CONN && bl_password_refused(err) && f->reread) {
		f->reread(f->reread_arg);
		if (count_passwords(f) != password)
			rc = bl_race(f, until, ret, err);
	}
	if (f->trace)
		trace_connect(f, ret, rc, err);
	if (rc == BIZLOCK_OK)
		ret->sql = sql;
	return rc;
}

int bl_failover_connect_once(const struct bl_config *config, bool any, struct bl_session *ret,
                             struct bl_err *err)
{
	struct bl_failover *f;
	int rc = bl_failover_new(&f, config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	f->any = any;
	f->io_ms = config->io_timeout_ms;
	rc = bl_failover_connect(f, NULL, BL_NEVER, ret, err);
	bl_failover_free(f, false);
	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_session_guard(ret, err);
	if (rc != BIZLOCK_OK)
		bl_session_close(ret);
	return rc;
}

/* ---- what sessions find ------------------------------------------------------------------ */

/* NULL for the only host, which needs no notes. */
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

const struct bl_host *bl_failover_host(const struct bl_failover *f, const struct bl_session *s)
{
	return s->host ? s->host : &f->targets[0].host;
}

const char *bl_failover_name(const struct bl_failover *f, const struct bl_session *s)
{
	const struct bl_host *host = bl_failover_host(f, s);

	if (s->server[0])
		return s->server;
	return host->name[0] ? host->name : "the default host";
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
