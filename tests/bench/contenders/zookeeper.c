/* ZooKeeper's lock recipe, with its C client: each lane makes an ephemeral, sequential node. The
 * lane with the lowest number holds, and each other lane watches the node before its own. A session
 * for each lane. */
#define _GNU_SOURCE 1
#define THREADED 1
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#include "contender.h"
#include "patience.h"

#define SESSION_MS 30000
#define DIGITS 10 /* of a sequence number, at the end of each name */

struct lane {
	zhandle_t *zk;
	sem_t woken;
	char folder[128], node[192]; /* node: that stands for the hold */
};

static char address[32];

static void must(const char *what, int rc)
{
	if (rc != ZOK)
		die("zookeeper: %s: %s", what, zerror(rc));
}

static void wake(zhandle_t *zk, int type, int state, const char *path, void *arg)
{
	struct lane *lane = arg;

	(void)zk;
	(void)type;
	(void)state;
	(void)path;
	sem_post(&lane->woken);
}

static void set_up(void)
{
	snprintf(address, sizeof(address), "127.0.0.1:%u", contender_port("ZOOKEEPER_PORT"));
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
}

static void *open_lane(const char *key)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	int rc;

	if (!lane)
		die("out of memory");
	sem_init(&lane->woken, 0, 0);
	lane->zk = zookeeper_init(address, wake, SESSION_MS, NULL, lane, 0);
	if (!lane->zk)
		die("zookeeper: no session");
	eventually(zoo_state(lane->zk) == ZOO_CONNECTED_STATE);
	snprintf(lane->folder, sizeof(lane->folder), "/%s", key);
	rc = zoo_create(lane->zk, lane->folder, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	must("create a folder", rc == ZNODEEXISTS ? ZOK : rc);
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	zookeeper_close(lane->zk);
	sem_destroy(&lane->woken);
	free(lane);
}

static const char *number_of(const char *name)
{
	size_t n = strlen(name);

	return n > DIGITS ? name + n - DIGITS : name;
}

/* The name before ours; NULL: ours is the lowest. */
static const char *before(const struct String_vector *names, const char *mine)
{
	const char *best = NULL;

	for (int32_t i = 0; i < names->count; i++) {
		const char *name = names->data[i];

		if (strcmp(number_of(name), number_of(mine)) < 0 &&
		    (!best || strcmp(number_of(name), number_of(best)) > 0))
			best = name;
	}
	return best;
}

/* False: there was a node before ours, which may be gone now. */
static bool is_first(struct lane *lane)
{
	struct String_vector names;
	const char *ahead;
	int rc = ZNONODE;

	must("list", zoo_get_children(lane->zk, lane->folder, 0, &names));
	ahead = before(&names, lane->node);
	if (ahead) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", lane->folder, ahead);
		rc = zoo_wexists(lane->zk, path, wake, lane, NULL);
		must("watch", rc == ZNONODE ? ZOK : rc);
	}
	deallocate_String_vector(&names);
	if (ahead && rc == ZOK)
		sem_wait(&lane->woken);
	return !ahead;
}

static void acquire(void *arg)
{
	struct lane *lane = arg;
	char path[160];

	snprintf(path, sizeof(path), "%s/lock-", lane->folder);
	must("create", zoo_create(lane->zk, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
	                          ZOO_EPHEMERAL | ZOO_SEQUENCE, lane->node, sizeof(lane->node)));
	while (!is_first(lane))
		;
}

static void release(void *arg)
{
	struct lane *lane = arg;

	must("delete", zoo_delete(lane->zk, lane->node, -1));
}

const struct contender contender_zookeeper = {
        .name = "zookeeper",
        .wakes = "watch",
        .set_up = set_up,
        .tear_down = contender_idle,
        .begin = contender_idle_begin,
        .end = contender_idle,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
};
