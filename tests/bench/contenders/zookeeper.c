/* ZooKeeper's lock recipe, with its C client: each lane makes an ephemeral, sequential node. The
 * lane with the lowest number holds, and each other lane watches the node before its own. A session
 * for each lane. Its recipe for shared locks: who shares watches the last node before its own of
 * one that wants to have it alone. */
#define _GNU_SOURCE 1
#define THREADED 1
#include <arpa/inet.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#include "contender.h"
#include "patience.h"

#define SESSION_MS 30000
#define READ "read-"
#define DIGITS 10 /* of a sequence number, at the end of each name */

struct lane {
	zhandle_t *zk;
	sem_t woken;
	unsigned number;             /* among many keys */
	const char *prefix;          /* of its nodes */
	char folder[128], node[192]; /* node: that stands for the hold */
};

enum place { FIRST, BEHIND, UNSURE };

static char address[32];
static unsigned port;

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
	port = contender_port("ZOOKEEPER_PORT");
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
}

static zhandle_t *dial_zookeeper(watcher_fn watcher, void *arg)
{
	zhandle_t *zk = zookeeper_init(address, watcher, SESSION_MS, NULL, arg, 0);

	if (!zk)
		die("zookeeper: no session");
	eventually(zoo_state(zk) == ZOO_CONNECTED_STATE);
	return zk;
}

static void make_folder(struct lane *lane, const char *key)
{
	int rc;

	snprintf(lane->folder, sizeof(lane->folder), "/%s", key);
	rc = zoo_create(lane->zk, lane->folder, NULL, -1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
	must("create a folder", rc == ZNODEEXISTS ? ZOK : rc);
}

static void *open_lane(const char *key)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane || sem_init(&lane->woken, 0, 0) != 0)
		die("zookeeper: no lane");
	lane->prefix = "lock-";
	lane->zk = dial_zookeeper(wake, lane);
	make_folder(lane, key);
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

static bool is_shared(const char *name)
{
	return strncmp(name, READ, strlen(READ)) == 0;
}

/* The name of the last one before ours that is in our way; NULL: there is none. */
static const char *before(const struct String_vector *names, const struct lane *lane)
{
	const char *mine = number_of(lane->node);
	const char *best = NULL;

	for (int32_t i = 0; i < names->count; i++) {
		const char *name = names->data[i];

		if (is_shared(name) && is_shared(lane->prefix))
			continue;
		if (strcmp(number_of(name), mine) < 0 &&
		    (!best || strcmp(number_of(name), number_of(best)) > 0))
			best = name;
	}
	return best;
}

static void enter(struct lane *lane)
{
	char path[160];

	snprintf(path, sizeof(path), "%s/%s", lane->folder, lane->prefix);
	must("create", zoo_create(lane->zk, path, NULL, -1, &ZOO_OPEN_ACL_UNSAFE,
	                          ZOO_EPHEMERAL | ZOO_SEQUENCE, lane->node, sizeof(lane->node)));
}

/* BEHIND: the node before ours is watched. UNSURE: there was one, which has just gone. */
static enum place look(struct lane *lane, watcher_fn watcher)
{
	struct String_vector names;
	const char *ahead;
	int rc = ZNONODE;

	must("list", zoo_get_children(lane->zk, lane->folder, 0, &names));
	ahead = before(&names, lane);
	if (ahead) {
		char path[256];

		snprintf(path, sizeof(path), "%s/%s", lane->folder, ahead);
		rc = zoo_wexists(lane->zk, path, watcher, lane, NULL);
		must("watch", rc == ZNONODE ? ZOK : rc);
	}
	deallocate_String_vector(&names);
	return !ahead ? FIRST : rc == ZOK ? BEHIND : UNSURE;
}

static void acquire(void *arg)
{
	struct lane *lane = arg;
	enum place place;

	enter(lane);
	while ((place = look(lane, wake)) != FIRST)
		if (place == BEHIND)
			sem_wait(&lane->woken);
}

static void release(void *arg)
{
	struct lane *lane = arg;

	must("delete", zoo_delete(lane->zk, lane->node, -1));
	lane->node[0] = '\0';
}

/* ---- shared locks ---------------------------------------------------------- */

static void begin_shared(const char *key, unsigned limit)
{
	(void)key;
	(void)limit;
}

static void acquire_shared(void *arg, bool alone)
{
	struct lane *lane = arg;

	lane->prefix = alone ? "write-" : READ;
	acquire(lane);
}

static const struct contender_shared shared = {
        .alone = true,
        .begin = begin_shared,
        .acquire = acquire_shared,
        .release = release,
};

/* ---- many keys: one session ------------------------------------------------ */

static struct {
	zhandle_t *zk;
	struct lane *lanes;
	void (*woken)(unsigned key);
} many;

static void wake_one(zhandle_t *zk, int type, int state, const char *path, void *arg)
{
	const struct lane *lane = arg;

	(void)zk;
	(void)type;
	(void)state;
	(void)path;
	if (lane)
		many.woken(lane->number);
}

static void begin_waits(unsigned keys, bool loop, void (*woken)(unsigned key))
{
	(void)loop;
	many.woken = woken;
	many.zk = dial_zookeeper(wake_one, NULL);
	many.lanes = calloc(keys, sizeof(*many.lanes));
	if (!many.lanes)
		die("zookeeper: no lanes");
	for (unsigned i = 0; i < keys; i++) {
		many.lanes[i].zk = many.zk;
		many.lanes[i].prefix = "lock-";
		many.lanes[i].number = i;
	}
}

static void end_waits(void)
{
	zookeeper_close(many.zk);
	free(many.lanes);
}

static bool attempt(unsigned key)
{
	struct lane *lane = &many.lanes[key];
	enum place place = UNSURE;

	if (!lane->node[0]) {
		char name[24];

		snprintf(name, sizeof(name), "waits-%u", key);
		make_folder(lane, name);
		enter(lane);
	}
	while (place == UNSURE)
		place = look(lane, wake_one);
	return place == FIRST;
}

static void release_one(unsigned key)
{
	release(&many.lanes[key]);
}

/* The packets that the server has received, pings of the sessions among them. */
static long long requests(void)
{
	static const char name[] = "Received: ";
	struct sockaddr_in to = {.sin_family = AF_INET,
	                         .sin_port = htons((uint16_t)port),
	                         .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char text[1024] = "srvr";
	const char *value;

	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
	    write(fd, text, 4) != 4 || recv(fd, text, sizeof(text) - 1, MSG_WAITALL) <= 0)
		die("zookeeper: srvr: no answer");
	close(fd);
	value = strstr(text, name);
	return value ? strtoll(value + strlen(name), NULL, 10) : -1;
}

static unsigned port_now(void)
{
	return port;
}

static const struct contender_waits waits = {
        .begin = begin_waits,
        .end = end_waits,
        .attempt = attempt,
        .release = release_one,
        .requests = requests,
        .port = port_now,
};

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
        .waits = &waits,
        .shared = &shared,
};
