/* The life of a client, but for its end: close.c. */
#include "client/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rnd.h"
#include "base/thread.h"
#include "client/hold/hold.h"
#include "client/sources.h"
#include "core/backoff.h"
#include "core/hosts.h"
#include "store/session/errclass.h"
#include "store/table/schema.h"

/* An open that tries again waits at least this long between two dials: a full server has enough to
 * do. */
#define OPEN_PAUSE_NS (50 * BL_NS_PER_MS)

int bl_client_new(struct bizlock **ret, struct bl_err *err)
{
	static atomic_uint_least64_t serials;
	struct bizlock *b = calloc(1, sizeof(*b));

	if (!b)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	b->serial = atomic_fetch_add(&serials, 1) + 1;
	b->stamp = bl_process_stamp();
	if (bl_config_init(&b->set, err) != BIZLOCK_OK) {
		free(b);
		return err->code;
	}
	pthread_mutex_init(&b->mu, NULL);
	bl_watch_init(&b->watch);
	bl_ops_init(&b->ops);
	bl_trace_init(&b->trace);
	b->loss_watch.fd = -1;
	bl_cond_init(&b->changed);
	*ret = b;
	return BIZLOCK_OK;
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

/* After a failure more of the answer may be to come, and it would be taken for the answer to the
 * first lock: so the pool does not get this connection. */
static bool find_bells(const struct bizlock *b, struct bl_session *s)
{
	struct bl_err ignored;

	if (!b->config.queue)
		return false;
	s->gone |= bl_bell_try(s, &ignored) != BIZLOCK_OK;
	return !s->gone;
}

/* Checks server and tables on the connection that will be the pool's first one. */
static int inspect(struct bizlock *b, struct bl_session *s, struct bl_err *err)
{
	int rc = bl_failover_connect(b->failover, NULL, BL_NEVER, s, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = bl_session_guard(s, err);
	if (rc == BIZLOCK_OK)
		rc = bl_server_probe(s, &b->server, err);
	b->failover->in_group = b->server.group;
	/* No batches where several members take writes: one conflicting change at another member
	 * undoes a whole batch. And a node of Galera can undo a transaction in the middle of a
	 * packet, and run the rest of the packet: rows that a batch has deleted would still be
	 * there, with no hold to own them. */
	b->config.combine &= !b->server.several_primaries;
	/* With several hosts, the next connection may lead to another server. */
	if (!bl_hosts_several(b->config.host))
		bl_failover_leads_to(b->failover, b->server.identity);
	if (rc == BIZLOCK_OK)
		rc = bl_schema_check(s, b->config.table_prefix, err);
	if (rc == BIZLOCK_OK)
		b->bells = find_bells(b, s);
	bl_session_unguard(s);
	if (rc != BIZLOCK_OK)
		bl_session_close(s);
	return rc;
}

/* Until when open tries again. A full server gets connect_timeout_ms at least: it is more likely to
 * recover soon than a server that is away. */
static bl_time open_until(const struct bizlock *b, const struct bl_err *err, bl_time began)
{
	int64_t ms = b->config.open_wait_ms;

	if (bl_server_full(err) && ms < b->config.connect_timeout_ms)
		ms = b->config.connect_timeout_ms;
	return began + ms * BL_NS_PER_MS;
}

static int pause_opening(struct bizlock *b, unsigned wakes, unsigned attempt, struct bl_err *err)
{
	bl_time until = bl_now() + OPEN_PAUSE_NS + bl_backoff_ns(attempt, bl_random(b));

	while (!bl_passed(until) && atomic_load(&b->wakes) == wakes && !atomic_load(&b->closing))
		bl_sleep(bl_earlier(until, bl_now() + BL_WAKE_NS) - bl_now());
	if (atomic_load(&b->wakes) == wakes && !atomic_load(&b->closing))
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_CANCELLED, "the wait for the server was interrupted");
}

static int inspect_in_time(struct bizlock *b, struct bl_session *s, struct bl_err *err)
{
	unsigned wakes = atomic_load(&b->wakes), attempt = 0;
	bl_time began = bl_now();
	int rc;

	for (;;) {
		rc = inspect(b, s, err);
		if (rc != BIZLOCK_CONN || !bl_server_away(err) ||
		    bl_passed(open_until(b, err, began)))
			return rc;
		rc = pause_opening(b, wakes, attempt++, err);
		if (rc != BIZLOCK_OK)
			return rc;
		bl_err_clear(err);
	}
}

/* A session that was opened before its server was known to be in a group lacks the settings for
 * that. */
static void give_to_pool(struct bizlock *b, struct bl_session *s)
{
	bl_lock(b);
	if (!s->gone && !b->server.group)
		bl_pool_adopt(&b->pool, s);
	bl_unlock(b);
}

static int build(struct bizlock *b, struct bl_session *s, struct bl_err *err)
{
	int rc = bl_sql_make(&b->sql, b->config.table_prefix, b->server.database, b->server.mariadb,
	                     b->bells, err);

	b->sql.compound = b->server.compound;
	b->sql.galera = b->server.galera;
	b->sql.group = b->server.group;
	b->bell_seed = bl_bell_seed(b->server.database, b->config.table_prefix);
	if (rc == BIZLOCK_OK && !bl_held_init(&b->held))
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	if (rc == BIZLOCK_OK)
		rc = bl_pool_init(&b->pool, &b->mu, b->failover, &b->sql, &b->numbers, err);
	if (rc == BIZLOCK_OK)
		rc = bl_renewer_start(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_janitor_start(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_loss_watch_start(b, err);
	if (rc == BIZLOCK_OK)
		give_to_pool(b, s);
	return rc;
}

/* Without the file the lease decides alone, as between hosts. */
static bool try_dir(struct bizlock *b, const char *dir)
{
	bool made = bl_life_begin(&b->life, dir, b->process.suffix);

	BL_TRACE(&b->trace, NULL, NULL, "runtime_dir %s: %s", dir,
	         made ? "has our file" : strerror(errno));
	return made;
}

/* /run comes first: a user's session, and the same user's jobs without a session, are to meet. */
static void begin_life(struct bizlock *b)
{
	const char *session = secure_getenv("XDG_RUNTIME_DIR");
	char dir[PATH_MAX];

	if (b->config.runtime_dir) {
		if (*b->config.runtime_dir)
			try_dir(b, b->config.runtime_dir);
		return;
	}
	if (try_dir(b, "/run/bizlock") || !session || *session != '/')
		return;
	if (snprintf(dir, sizeof(dir), "%s/bizlock", session) < (int)sizeof(dir))
		try_dir(b, dir);
}

void bl_client_tear_down(struct bizlock *b, bool forked)
{
	bl_ops_forget(b);
	if (forked) {
		bl_renewer_forget(b);
		bl_watch_forget(b);
	} else {
		bl_watch_stop(b);
		bl_worker_stop(&b->janitor.worker, &b->mu);
		bl_renewer_stop(b);
		bl_loss_watch_stop(b);
	}
	if (b->loss_watch.fd >= 0)
		close(b->loss_watch.fd);
	b->loss_watch.fd = -1;
	bl_life_end(&b->life, forked);
	bl_pool_free(&b->pool, forked);
	bl_failover_free(b->failover, forked);
	b->failover = NULL;
	bl_held_free(&b->held);
	bl_slots_free(&b->slots);
	bl_sql_free(&b->sql);
}

int bl_client_open(struct bizlock *b, struct bl_err *err)
{
	struct bl_session first = {0};
	int rc = bl_client_config(b, &b->config, err);

	if (rc != BIZLOCK_OK)
		return rc;
	rc = make_identity(b, err);
	if (rc == BIZLOCK_OK)
		rc = bl_failover_new(&b->failover, &b->config, err);
	if (rc == BIZLOCK_OK) {
		b->failover->reread = bl_client_reread_password;
		b->failover->reread_arg = b;
		b->failover->trace = &b->trace;
		rc = inspect_in_time(b, &first, err);
	}
	if (rc == BIZLOCK_OK)
		begin_life(b);
	if (rc == BIZLOCK_OK)
		rc = build(b, &first, err);
	bl_session_close(&first);
	if (rc == BIZLOCK_OK)
		return rc;
	bl_client_tear_down(b, false);
	bl_config_free(&b->config);
	return rc;
}

/* Nothing here but atomics and write(): it may run in a signal handler. */
void bl_client_interrupt(struct bizlock *b)
{
	atomic_fetch_add(&b->wakes, 1);
	if (b->state < BL_CLIENT_OPEN)
		return;
	bl_pool_wake(&b->pool);
	bl_watch_interrupt(&b->watch);
	bl_ops_interrupt(&b->ops);
}

void bl_client_stop(struct bizlock *b, bool on)
{
	atomic_store(&b->stopped, on);
	if (on)
		bl_client_interrupt(b);
}

void bl_client_on_lost(struct bizlock *b, struct bl_listener listener)
{
	bl_lock(b);
	bl_loss_tell_to(b, listener);
	if (b->state == BL_CLIENT_OPEN) /* before that, the loss watch belongs to open */
		bl_worker_by(&b->loss_watch.worker, 0); /* tells earlier losses */
	bl_unlock(b);
}

void bl_client_numbers(struct bizlock *b, bizlock_numbers *ret)
{
	const struct bl_hold *h = NULL;
	uint64_t held = 0;

	bl_lock(b);
	while ((h = bl_held_walk(&b->held, h)) != NULL)
		held += bl_hold_left_ms(h) > 0;
	bl_unlock(b);
	bl_numbers_read(&b->numbers, held, ret);
}
