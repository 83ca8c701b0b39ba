/* The life of a client: open, migrate, interrupt, close. */
#include "client/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/rnd.h"
#include "core/hosts.h"
#include "store/schema.h"

/* What environment and files say goes into a copy: bizlock_set() may be called again after
 * a failed open, and by another thread meanwhile. */
int bl_client_config(struct bizlock *b, struct bl_config *ret, struct bl_err *err)
{
	struct bl_config config;
	int rc;

	memset(&config, 0, sizeof(config));
	pthread_mutex_lock(&b->mu);
	rc = bl_config_copy(&config, b->state >= BL_CLIENT_OPEN ? &b->config : &b->set, err);
	pthread_mutex_unlock(&b->mu);
	if (rc == BIZLOCK_OK)
		rc = bl_sources_read(&config, err);
	if (rc == BIZLOCK_OK)
		*ret = config;
	else
		bl_config_free(&config);
	return rc;
}

static int make_identity(struct bizlock *b, struct bl_err *err)
{
	struct {
		uint8_t nonce[8];
		uint64_t jitter;
	} seed;
	char host[65] = "";

	if (!bl_random_bytes(&seed, sizeof(seed)))
		return bl_err_set(err, BIZLOCK_UNSUPPORTED, "the kernel gives no random numbers");
	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	bl_process_make(&b->process, getpid(), seed.nonce, host);
	b->jitter = seed.jitter;
	return BIZLOCK_OK;
}

static bool find_bells(const struct bizlock *b, struct bl_session *s)
{
	struct bl_err ignored;

	return b->config.queue && bl_bell_try(s, &ignored) == BIZLOCK_OK;
}

/* One connection looks at everything before the pool makes its own. */
static int inspect(struct bizlock *b, struct bl_err *err)
{
	struct bl_session s;
	int rc = bl_session_open(&s, &b->config, NULL, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_server_probe(&s, &b->server, err);
	/* A node can undo a transaction in the middle of a packet and go on behind it: what a
	 * batch has deleted would be there still, and nobody's. */
	b->config.combine &= !b->server.galera;
	if (bl_hosts_several(b->config.host))
		b->server.identity[0] = '\0'; /* the next connection may be to another one */
	if (rc == BIZLOCK_OK)
		rc = bl_schema_check(&s, b->config.table_prefix, err);
	if (rc == BIZLOCK_OK)
		b->bells = find_bells(b, &s);
	bl_session_close(&s);
	return rc;
}

static int build(struct bizlock *b, struct bl_err *err)
{
	int rc = bl_sql_make(&b->sql, b->config.table_prefix, b->server.database, b->server.mariadb,
	                     b->bells, err);

	b->bell_seed = bl_bell_seed(b->server.database, b->sql.table);
	if (rc == BIZLOCK_OK && !bl_held_init(&b->held))
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (rc == BIZLOCK_OK)
		rc = bl_pool_init(&b->pool, &b->mu, &b->config, &b->sql, &b->numbers, err);
	if (rc == BIZLOCK_OK)
		rc = bl_renewer_start(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_janitor_start(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_watch_start(b, err);
	return rc;
}

void bl_client_tear_down(struct bizlock *b, bool forked)
{
	if (forked) {
		bl_renewer_forget(b);
	} else {
		bl_worker_stop(&b->janitor.worker, &b->mu);
		bl_renewer_stop(b);
		bl_watch_stop(b);
	}
	bl_pool_free(&b->pool, forked);
	bl_held_free(&b->held);
	bl_sql_free(&b->sql);
}

int bl_client_open(struct bizlock *b, struct bl_err *err)
{
	int rc = bl_client_config(b, &b->config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = make_identity(b, err);
	if (rc == BIZLOCK_OK)
		rc = inspect(b, err);
	if (rc == BIZLOCK_OK)
		rc = build(b, err);
	if (rc == BIZLOCK_OK)
		return rc;
	bl_client_tear_down(b, false);
	bl_config_free(&b->config);
	return rc;
}

int bl_client_migrate(struct bizlock *b, struct bl_err *err)
{
	struct bl_config config;
	struct bl_server server;
	struct bl_session s;
	int rc = bl_client_config(b, &config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_session_open(&s, &config, NULL, err);
	if (rc == BIZLOCK_OK) {
		rc = bl_server_probe(&s, &server, err);
		if (rc == BIZLOCK_OK)
			rc = bl_schema_migrate(&s, config.table_prefix, err);
		bl_session_close(&s);
	}
	bl_config_free(&config);
	return rc;
}

/* Nothing here but atomics and write(): it may run in a signal handler. */
void bl_client_interrupt(struct bizlock *b)
{
	atomic_fetch_add(&b->wakes, 1);
	if (b->state >= BL_CLIENT_OPEN)
		bl_pool_wake(&b->pool);
}

void bl_client_on_lost(struct bizlock *b, bl_lost_fn *fn, void *arg)
{
	pthread_mutex_lock(&b->mu);
	b->watch.fn = fn;
	b->watch.arg = arg;
	pthread_mutex_unlock(&b->mu);
}
