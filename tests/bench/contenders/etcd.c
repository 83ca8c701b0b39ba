/* etcd's lock service, over the HTTP/JSON gateway: the recipe of its concurrency
 * package (a key that bears the session's lease, and the wait for the keys before it)
 * runs in the server, which wakes the waiter. One connection, kept open, and one lease
 * for each lane. */
#define _GNU_SOURCE 1
#include <curl/curl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contender.h"
#include "patience.h"

#define LEASE_S "900" /* longer than any run: no lane renews its own */

struct lane {
	CURL *curl;
	struct curl_slist *headers;
	char reply[4096], error[CURL_ERROR_SIZE];
	size_t length;
	char lease[32], name[128];           /* base64 */
	char held[256];                      /* the key that stands for the hold, base64 */
	void (*each_line)(const char *line); /* where the answer is read line by line */
};

static unsigned port;

static size_t keep(char *data, size_t one, size_t n, void *arg)
{
	struct lane *lane = arg;

	if (one * n >= sizeof(lane->reply) - lane->length)
		return 0;
	memcpy(lane->reply + lane->length, data, one * n);
	lane->length += one * n;
	lane->reply[lane->length] = '\0';
	return one * n;
}

static void ask(struct lane *lane, const char *path)
{
	char url[64];
	long status = 0;

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/%s", port, path);
	lane->length = 0;
	curl_easy_setopt(lane->curl, CURLOPT_URL, url);
	if (curl_easy_perform(lane->curl) != CURLE_OK)
		die("etcd: %s", lane->error);
	curl_easy_getinfo(lane->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		die("etcd: %s: %.300s", path, lane->reply);
}

static void post(struct lane *lane, const char *path, const char *body)
{
	curl_easy_setopt(lane->curl, CURLOPT_POSTFIELDS, body);
	ask(lane, path);
}

/* The string after "name" in the reply. */
static void find(const struct lane *lane, const char *name, char *ret, size_t size)
{
	char quoted[32];
	const char *at;
	size_t n;

	snprintf(quoted, sizeof(quoted), "\"%s\":\"", name);
	at = strstr(lane->reply, quoted);
	if (!at)
		die("etcd: no %s in %.300s", name, lane->reply);
	at += strlen(quoted);
	n = strcspn(at, "\"");
	snprintf(ret, size, "%.*s", (int)n, at);
}

static void base64(const char *text, char *ret, size_t size)
{
	static const char digits[] =
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t n = strlen(text), at = 0;

	for (size_t i = 0; i < n && at + 5 < size; i += 3) {
		uint32_t three = 0;

		for (size_t k = 0; k < 3; k++)
			three = three << 8 | (i + k < n ? (unsigned char)text[i + k] : 0);
		for (size_t k = 0; k < 4; k++)
			ret[at++] = i + k > n ? '=' : digits[three >> (18 - 6 * k) & 63];
	}
	ret[at] = '\0';
}

static void set_up(void)
{
	port = contender_port("ETCD_PORT");
}

static void begin(unsigned lanes)
{
	(void)lanes;
	if (curl_global_init(CURL_GLOBAL_NOTHING) != 0)
		die("etcd: no curl");
}

static struct lane *lane_new(void)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane || !(lane->curl = curl_easy_init()))
		die("etcd: no lane");
	lane->headers = curl_slist_append(NULL, "Content-Type: application/json");
	lane->headers = curl_slist_append(lane->headers, "Expect:");
	curl_easy_setopt(lane->curl, CURLOPT_HTTPHEADER, lane->headers);
	curl_easy_setopt(lane->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(lane->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(lane->curl, CURLOPT_ERRORBUFFER, lane->error);
	curl_easy_setopt(lane->curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(lane->curl, CURLOPT_WRITEDATA, lane);
	return lane;
}

static void lane_free(struct lane *lane)
{
	curl_easy_cleanup(lane->curl);
	curl_slist_free_all(lane->headers);
	free(lane);
}

static void *open_lane(const char *key)
{
	struct lane *lane = lane_new();

	base64(key, lane->name, sizeof(lane->name));
	post(lane, "v3/lease/grant", "{\"TTL\":\"" LEASE_S "\"}");
	find(lane, "ID", lane->lease, sizeof(lane->lease));
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;
	char body[64];

	snprintf(body, sizeof(body), "{\"ID\":\"%s\"}", lane->lease);
	post(lane, "v3/lease/revoke", body);
	lane_free(lane);
}

static void acquire(void *arg)
{
	struct lane *lane = arg;
	char body[256];

	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"lease\":\"%s\"}", lane->name, lane->lease);
	post(lane, "v3/lock/lock", body);
	find(lane, "key", lane->held, sizeof(lane->held));
}

static void release(void *arg)
{
	struct lane *lane = arg;
	char body[320];

	snprintf(body, sizeof(body), "{\"key\":\"%s\"}", lane->held);
	post(lane, "v3/lock/unlock", body);
}

/* ---- many keys: one connection watches, one asks --------------------------- */

#define KEY "{\"key\":\"%s\"}"
#define WATCH "{\"create_request\":{\"key\":\"%s\",\"watch_id\":%u,\"filters\":[\"NOPUT\"]}}"
#define TAKE                                                                                       \
	"{\"compare\":[{\"target\":\"CREATE\",\"key\":\"%s\",\"createRevision\":\"0\"}],"          \
	"\"success\":[{\"requestPut\":{\"key\":\"%s\",\"lease\":\"%s\"}}]}"

/* The HTTP server drops what is left of a body when the answer begins, unless it is longer than
 * 256 KB. What it may drop here is blanks. */
#define PADDING 600000

static struct {
	pthread_mutex_t mu;
	struct lane *lane, *ear;
	pthread_t thread;
	unsigned keys, watched;
	sem_t ready; /* all keys are watched */
	void (*woken)(unsigned key);
	atomic_bool over;
	long long requests;
} many = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void name_key(unsigned key, char *ret, size_t size)
{
	char name[24];

	snprintf(name, sizeof(name), "waits-%u", key);
	base64(name, ret, size);
}

/* One message of the stream: a watch has begun, or its key is gone. */
static void hear_line(const char *line)
{
	static const char name[] = "\"watch_id\":\"";
	const char *id = strstr(line, name);

	if (!id || strstr(line, "\"canceled\":true"))
		die("etcd: watch: %.300s", line);
	if (strstr(line, "\"events\":"))
		many.woken((unsigned)strtoul(id + strlen(name), NULL, 10) - 1);
	else if (++many.watched == many.keys)
		sem_post(&many.ready);
}

/* A long line is cut. */
static size_t hear(char *data, size_t one, size_t n, void *arg)
{
	struct lane *lane = arg;

	for (size_t i = 0; i < one * n; i++) {
		if (data[i] == '\n') {
			lane->reply[lane->length] = '\0';
			lane->length = 0;
			lane->each_line(lane->reply);
		} else if (lane->length < sizeof(lane->reply) - 1) {
			lane->reply[lane->length++] = data[i];
		}
	}
	return one * n;
}

static void by_lines(struct lane *lane, void (*each_line)(const char *line))
{
	lane->each_line = each_line;
	curl_easy_setopt(lane->curl, CURLOPT_WRITEFUNCTION, hear);
}

static int is_over(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
	(void)arg, (void)a, (void)b, (void)c, (void)d;
	return atomic_load(&many.over);
}

static void *watch_all(void *arg)
{
	size_t size = (size_t)many.keys * 128 + PADDING, at = 0;
	char *body = malloc(size + 1), url[64];

	if (!body)
		die("out of memory");
	for (unsigned i = 0; i < many.keys; i++) {
		char key[48];

		name_key(i, key, sizeof(key));
		at += (size_t)snprintf(body + at, size - at, WATCH, key, i + 1);
	}
	memset(body + at, ' ', size - at);
	body[size] = '\0';
	snprintf(url, sizeof(url), "http://127.0.0.1:%u/v3/watch", port);
	curl_easy_setopt(many.ear->curl, CURLOPT_URL, url);
	curl_easy_setopt(many.ear->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_perform(many.ear->curl);
	if (!atomic_load(&many.over))
		die("etcd: the watch ended: %s", many.ear->error);
	free(body);
	return arg;
}

static void start_to_watch(unsigned keys, void (*woken)(unsigned key))
{
	many.keys = keys;
	many.woken = woken;
	many.ear = lane_new();
	by_lines(many.ear, hear_line);
	curl_easy_setopt(many.ear->curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(many.ear->curl, CURLOPT_XFERINFOFUNCTION, is_over);
	sem_init(&many.ready, 0, 0);
	if (pthread_create(&many.thread, NULL, watch_all, NULL) != 0)
		die("no thread");
	sem_wait(&many.ready);
}

static void begin_waits(unsigned keys, bool loop, void (*woken)(unsigned key))
{
	begin(keys);
	(void)loop;
	many.lane = open_lane("");
	if (woken)
		start_to_watch(keys, woken);
}

static void end_waits(void)
{
	if (many.ear) {
		atomic_store(&many.over, true);
		pthread_join(many.thread, NULL);
		lane_free(many.ear);
		sem_destroy(&many.ready);
	}
	close_lane(many.lane);
	curl_global_cleanup();
}

static bool attempt(unsigned number)
{
	char key[48], body[320];
	bool taken;

	name_key(number, key, sizeof(key));
	snprintf(body, sizeof(body), TAKE, key, key, many.lane->lease);
	pthread_mutex_lock(&many.mu);
	post(many.lane, "v3/kv/txn", body);
	taken = strstr(many.lane->reply, "\"succeeded\":true") != NULL;
	pthread_mutex_unlock(&many.mu);
	return taken;
}

static void release_one(unsigned number)
{
	char key[48], body[80];

	name_key(number, key, sizeof(key));
	snprintf(body, sizeof(body), KEY, key);
	pthread_mutex_lock(&many.mu);
	post(many.lane, "v3/kv/deleterange", body);
	pthread_mutex_unlock(&many.mu);
}

static void count_line(const char *line)
{
	static const char name[] = "grpc_server_msg_received_total{";
	const char *value = strchr(line, '}');

	if (strncmp(line, name, strlen(name)) == 0 && value)
		many.requests += (long long)strtod(value + 1, NULL);
}

/* Messages that its services have received, also those within a stream. */
static long long requests(void)
{
	struct lane *lane = lane_new();

	by_lines(lane, count_line);
	many.requests = 0;
	ask(lane, "metrics");
	lane_free(lane);
	return many.requests;
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

const struct contender contender_etcd = {
        .name = "etcd",
        .wakes = "lock service",
        .set_up = set_up,
        .tear_down = contender_idle,
        .begin = begin,
        .end = curl_global_cleanup,
        .open = open_lane,
        .acquire = acquire,
        .release = release,
        .close = close_lane,
        .waits = &waits,
};
