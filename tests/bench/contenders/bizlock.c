/* bizlock as users have it: one client a process and default options, but as many connections as
 * there are threads, where these are more than 16. */
#define _GNU_SOURCE 1
#include <stdio.h>

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

/* ---- many keys: default options ------------------------------------------ */

static void begin_waits(unsigned keys, bool loop, void (*woken)(unsigned key))
{
	(void)keys;
	(void)woken;
	if (loop)
		die("bizlock: a loop needs bizlock_async.h");
	client = client_open(&bench_world, NULL);
}

static bool attempt(unsigned key)
{
	char id[24];

	snprintf(id, sizeof(id), "waits-%u", key);
	acquire(id);
	return true;
}

static void release_one(unsigned key)
{
	char id[24];

	snprintf(id, sizeof(id), "waits-%u", key);
	release(id);
}

static const struct contender_waits waits = {
        .begin = begin_waits,
        .end = end,
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
};
