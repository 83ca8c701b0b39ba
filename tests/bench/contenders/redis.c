/* SET NX PX with a random token; the release compares it and deletes, in a script, and
 * publishes. Waiters are woken as Redisson does it: a process subscribes once, each
 * message lets one of its threads try again, and nobody waits past the lease. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <hiredis/hiredis.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>

#include "contender.h"
#include "patience.h"

#define CHANNEL "bench:released"
#define LEASE_S 30
#define LEASE_MS "30000"
#define LEASE_OF_MANY_MS "900000" /* longer than any run: nobody renews them */
#define RELEASE                                                                                    \
	"if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end "                              \
	"redis.call('del', KEYS[1]) redis.call('publish', ARGV[2], '1') return 1"
#define TAKE_PERMIT                                                                                \
	"local value = redis.call('get', KEYS[1]) "                                                \
	"if value ~= false and tonumber(value) >= 1 then "                                         \
	"redis.call('decrby', KEYS[1], 1) return 1 end return 0"
#define GIVE_PERMIT                                                                                \
	"local value = redis.call('incrby', KEYS[1], 1) redis.call('publish', ARGV[1], value)"

struct lane {
	redisContext *redis;
	const char *key, *channel, *lease_ms;
	char token[2 * 16 + 1], script[64];
};

/* What a process's threads have in common when they wait. */
static struct {
	pthread_mutex_t mu;
	redisContext *redis; /* NULL: no thread had to wait yet */
	pthread_t thread;
	sem_t released;
	void (*woken)(unsigned key); /* where many keys are waited for */
	atomic_bool over;
} ear = {.mu = PTHREAD_MUTEX_INITIALIZER};

static unsigned port;
static redisContext *observer;

static redisContext *dial_redis(void)
{
	redisContext *redis = redisConnect("127.0.0.1", (int)port);

	if (!redis || redis->err)
		die("redis: %s", redis ? redis->errstr : "out of memory");
	return redis;
}

static redisReply *ask(redisContext *redis, int n, const char **words)
{
	redisReply *reply = redisCommandArgv(redis, n, words, NULL);

	if (!reply || reply->type == REDIS_REPLY_ERROR)
		die("redis: %s", reply ? reply->str : redis->errstr);
	return reply;
}

#define ASK(redis, ...)                                                                            \
	ask(redis, (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                  \
	    (const char *[]){__VA_ARGS__})

/* ---- waiting ------------------------------------------------------------- */

/* A message names its channel, and that of one of many keys its number. */
static void tell(const redisReply *reply)
{
	if (!ear.woken)
		sem_post(&ear.released);
	else if (reply->elements == 3)
		ear.woken((unsigned)strtoul(reply->element[1]->str + sizeof(CHANNEL), NULL, 10));
}

static void *listen_for_releases(void *arg)
{
	redisReply *reply;

	while (redisGetReply(ear.redis, (void **)&reply) == REDIS_OK) {
		tell(reply);
		freeReplyObject(reply);
	}
	if (!atomic_load(&ear.over))
		die("redis: the subscription ended: %s", ear.redis->errstr);
	return arg;
}

static void start_to_listen(void)
{
	sem_init(&ear.released, 0, 0);
	if (pthread_create(&ear.thread, NULL, listen_for_releases, NULL) != 0)
		die("no thread");
}

static void listen_once(void)
{
	pthread_mutex_lock(&ear.mu);
	if (!ear.redis) {
		ear.redis = dial_redis();
		freeReplyObject(ASK(ear.redis, "SUBSCRIBE", CHANNEL));
		start_to_listen();
	}
	pthread_mutex_unlock(&ear.mu);
}

static void wait_for_release(void)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LEASE_S;
	while (sem_timedwait(&ear.released, &end) != 0 && errno == EINTR)
		;
}

static void end(void)
{
	if (!ear.redis)
		return;
	atomic_store(&ear.over, true);
	shutdown(ear.redis->fd, SHUT_RDWR);
	pthread_join(ear.thread, NULL);
	redisFree(ear.redis);
	sem_destroy(&ear.released);
}

/* ---- the lock ------------------------------------------------------------ */

static void *open_lane(const char *key)
{
	struct lane *lane = calloc(1, sizeof(*lane));
	unsigned char token[16];
	redisReply *reply;

	if (!lane || getrandom(token, sizeof(token), 0) != sizeof(token))
		die("redis: no lane");
	for (size_t i = 0; i < sizeof(token); i++)
		snprintf(lane->token + 2 * i, 3, "%02x", token[i]);
	lane->redis = dial_redis();
	lane->key = key;
	lane->channel = CHANNEL;
	lane->lease_ms = LEASE_MS;
	reply = ASK(lane->redis, "SCRIPT", "LOAD", RELEASE);
	snprintf(lane->script, sizeof(lane->script), "%s", reply->str);
	freeReplyObject(reply);
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;

	redisFree(lane->redis);
	free(lane);
}

static bool take(struct lane *lane)
{
	redisReply *reply =
	        ASK(lane->redis, "SET", lane->key, lane->token, "NX", "PX", lane->lease_ms);
	bool taken = reply->type != REDIS_REPLY_NIL;

	freeReplyObject(reply);
	return taken;
}

static void acquire(void *arg)
{
	struct lane *lane = arg;

	if (take(lane))
		return;
	listen_once();
	while (!take(lane))
		wait_for_release();
}

static void release(void *arg)
{
	struct lane *lane = arg;
	redisReply *reply = ASK(lane->redis, "EVALSHA", lane->script, "1", lane->key, lane->token,
	                        lane->channel);

	if (reply->integer != 1)
		die("redis: not mine");
	freeReplyObject(reply);
}

/* ---- a counter of permits, as in Redisson's RSemaphore ------------------- */

static void begin_permits(const char *key, unsigned limit)
{
	char permits[16];

	snprintf(permits, sizeof(permits), "%u", limit);
	freeReplyObject(ASK(observer, "SET", key, permits));
}

static bool take_permit(struct lane *lane)
{
	redisReply *reply = ASK(lane->redis, "EVAL", TAKE_PERMIT, "1", lane->key);
	bool taken = reply->integer == 1;

	freeReplyObject(reply);
	return taken;
}

static void acquire_permit(void *arg, bool alone)
{
	(void)alone;
	if (take_permit(arg))
		return;
	listen_once();
	while (!take_permit(arg))
		wait_for_release();
}

static void release_permit(void *arg)
{
	struct lane *lane = arg;

	freeReplyObject(ASK(lane->redis, "EVAL", GIVE_PERMIT, "1", lane->key, lane->channel));
}

static const struct contender_shared shared = {
        .limits = true,
        .begin = begin_permits,
        .acquire = acquire_permit,
        .release = release_permit,
};

/* ---- many keys: one connection subscribes, one asks ----------------------- */

static struct {
	pthread_mutex_t mu;
	struct lane *lane;
	char key[24], channel[40]; /* of the command under way */
} many = {.mu = PTHREAD_MUTEX_INITIALIZER};

/* A channel for each key, as in Redisson. */
static void subscribe(unsigned keys)
{
	redisReply *reply;

	for (unsigned i = 0; i < keys; i++)
		redisAppendCommand(ear.redis, "SUBSCRIBE %s:%u", CHANNEL, i);
	for (unsigned i = 0; i < keys; i++) {
		if (redisGetReply(ear.redis, (void **)&reply) != REDIS_OK)
			die("redis: %s", ear.redis->errstr);
		freeReplyObject(reply);
	}
}

static void begin_waits(unsigned keys, bool loop, void (*woken)(unsigned key))
{
	(void)loop;
	many.lane = open_lane(many.key);
	many.lane->channel = many.channel;
	many.lane->lease_ms = LEASE_OF_MANY_MS;
	if (!woken)
		return;
	ear.woken = woken;
	ear.redis = dial_redis();
	subscribe(keys);
	start_to_listen();
}

static void end_waits(void)
{
	end();
	close_lane(many.lane);
}

static struct lane *lane_for(unsigned key)
{
	pthread_mutex_lock(&many.mu);
	snprintf(many.key, sizeof(many.key), "waits-%u", key);
	snprintf(many.channel, sizeof(many.channel), "%s:%u", CHANNEL, key);
	return many.lane;
}

static bool attempt(unsigned key)
{
	bool taken = take(lane_for(key));

	pthread_mutex_unlock(&many.mu);
	return taken;
}

static void release_one(unsigned key)
{
	release(lane_for(key));
	pthread_mutex_unlock(&many.mu);
}

static unsigned port_now(void)
{
	return port;
}

/* ---- two servers --------------------------------------------------------- */

static void set_up_always(void)
{
	port = contender_port("REDIS_ALWAYS_PORT");
	observer = dial_redis();
}

static void set_up(void)
{
	port = contender_port("REDIS_PORT");
	observer = dial_redis();
}

static void tear_down(void)
{
	redisFree(observer);
}

static long long requests(void)
{
	static const char name[] = "total_commands_processed:";
	redisReply *reply = ASK(observer, "INFO", "stats");
	const char *value = strstr(reply->str, name);
	long long n = value ? strtoll(value + strlen(name), NULL, 10) : -1;

	freeReplyObject(reply);
	return n;
}

static const struct contender_waits waits = {
        .begin = begin_waits,
        .end = end_waits,
        .attempt = attempt,
        .release = release_one,
        .requests = requests,
        .port = port_now,
};

const struct contender contender_redis_always = {
        .name = "redis_always",
        .wakes = "publish",
        .set_up = set_up_always,
        .tear_down = tear_down,
        .begin = contender_idle_begin,
        .end = end,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .requests = requests,
        .waits = &waits,
        .shared = &shared,
};

const struct contender contender_redis = {
        .name = "redis",
        .wakes = "publish",
        .set_up = set_up,
        .tear_down = tear_down,
        .begin = contender_idle_begin,
        .end = end,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .requests = requests,
        .waits = &waits,
        .shared = &shared,
};
