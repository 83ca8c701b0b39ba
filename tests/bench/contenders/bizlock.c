/* bizlock as users have it: one client a process and default options, but as many connections as
 * there are threads, where these are more than 16. */
#define _GNU_SOURCE 1
#include <bizlock_async.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "contender.h"
#include "mysql.h"
#include "patience.h"

static bizlock *client;

static void begin(unsigned lanes)
{
	char connections[16];

	snprintf(connections, sizeof(connections), "%u", lanes > 16 ? lanes : 16);
	client = client_open(&bench_world, OPTIONS("max_connections", connections));
}

static void end(void)
{
	bizlock_close(client);
}

static void *open_lane(const char *key)
{
	return (void *)key;
}

static void close_lane(void *lane)
{
	(void)lane;
}

static void acquire(void *lane)
{
	if (bizlock_acquire(client, (bizlock_key){"bench", lane}, NULL, NULL) != BIZLOCK_OK)
		die("bizlock: %s", bizlock_errmsg(client));
}

static void release(void *lane)
{
	if (bizlock_release(client, (bizlock_key){"bench", lane}, NULL, NULL) != BIZLOCK_OK)
		die("bizlock: %s", bizlock_errmsg(client));
}

/* ---- shared locks -------------------------------------------------------- */

static uint32_t limit_of_sharers;

static void begin_shared(const char *key, unsigned limit)
{
	(void)key;
	limit_of_sharers = limit;
}

static void acquire_shared(void *lane, bool alone)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.flags = alone ? 0 : BIZLOCK_SHARED;
	opts.limit = limit_of_sharers;
	if (bizlock_acquire(client, (bizlock_key){"bench", lane}, &opts, NULL) != BIZLOCK_OK)
		die("bizlock: %s", bizlock_errmsg(client));
}

static const struct contender_shared shared = {
        .limits = true,
        .alone = true,
        .begin = begin_shared,
        .acquire = acquire_shared,
        .release = release,
};

/* ---- many keys: default options ------------------------------------------ */

#define OWNER "loop"

/* Where one thread waits for all, another one tells it what is done. */
static struct {
	void (*woken)(unsigned key); /* NULL: a thread waits for each key */
	pthread_t thread;
	atomic_bool *granted, over;
	atomic_uint releases; /* under way */
} loop;

static void name_key(unsigned key, char ret[static 24])
{
	snprintf(ret, 24, "waits-%u", key);
}

static void *dispatch(void *arg)
{
	struct pollfd done = {.fd = bizlock_fd(client), .events = POLLIN};

	while (!atomic_load(&loop.over)) {
		poll(&done, 1, 100);
		if (bizlock_dispatch(client, NULL) != BIZLOCK_OK)
			die("bizlock: %s", bizlock_errmsg(client));
	}
	return arg;
}

static void begin_waits(unsigned keys, bool by_one, void (*woken)(unsigned key))
{
	client = client_open(&bench_world, NULL);
	loop.woken = by_one ? woken : NULL;
	if (!loop.woken)
		return;
	loop.granted = calloc(keys, sizeof(*loop.granted));
	if (!loop.granted || pthread_create(&loop.thread, NULL, dispatch, NULL) != 0)
		die("bizlock: no thread");
}

static void end_waits(void)
{
	if (loop.woken) {
		eventually(atomic_load(&loop.releases) == 0);
		atomic_store(&loop.over, true);
		pthread_join(loop.thread, NULL);
		free(loop.granted);
	}
	end();
}

static void on_grant(void *arg, const bizlock_result *result)
{
	unsigned key = (unsigned)(uintptr_t)arg;

	if (result->rc != BIZLOCK_OK)
		die("bizlock: %s", result->message);
	atomic_store(&loop.granted[key], true);
	loop.woken(key);
}

static void on_release(void *arg, const bizlock_result *result)
{
	(void)arg;
	if (result->rc != BIZLOCK_OK)
		die("bizlock: %s", result->message);
	atomic_fetch_sub(&loop.releases, 1);
}

static bool attempt(unsigned key)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	char id[24];

	name_key(key, id);
	if (!loop.woken) {
		acquire(id);
		return true;
	}
	if (atomic_load(&loop.granted[key]))
		return true;
	opts.owner = OWNER;
	if (bizlock_acquire_start(client, (bizlock_key){"bench", id}, &opts, on_grant,
	                          (void *)(uintptr_t)key, NULL) != BIZLOCK_OK)
		die("bizlock: %s", bizlock_errmsg(client));
	return false;
}

static void release_one(unsigned key)
{
	char id[24];

	name_key(key, id);
	if (!loop.woken) {
		release(id);
		return;
	}
	atomic_store(&loop.granted[key], false);
	atomic_fetch_add(&loop.releases, 1);
	if (bizlock_release_start(client, (bizlock_key){"bench", id}, OWNER, on_release, NULL,
	                          NULL) != BIZLOCK_OK)
		die("bizlock: %s", bizlock_errmsg(client));
}

static const struct contender_waits waits = {
        .begin = begin_waits,
        .end = end_waits,
        .attempt = attempt,
        .release = release_one,
        .requests = bench_mysql_requests,
        .port = bench_mysql_port,
};

const struct contender contender_bizlock = {
        .name = "bizlock",
        .wakes = "doorbell",
        .set_up = bench_mysql_set_up,
        .tear_down = bench_mysql_tear_down,
        .begin = begin,
        .end = end,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .requests = bench_mysql_requests,
        .waits = &waits,
        .shared = &shared,
};
