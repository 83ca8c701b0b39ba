/* etcd's lock service, over the HTTP/JSON gateway: the recipe of its concurrency
 * package (a key that bears the session's lease, and the wait for the keys before it)
 * runs in the server, which wakes the waiter. One connection, kept open, and one lease
 * for each lane. */
#define _GNU_SOURCE 1
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contender.h"
#include "patience.h"

#define LEASE_S "120" /* longer than any run: no lane renews its own */

struct lane {
	CURL *curl;
	struct curl_slist *headers;
	char reply[4096], error[CURL_ERROR_SIZE];
	size_t length;
	char lease[32], name[128]; /* base64 */
	char held[256];            /* the key that stands for the hold, base64 */
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

static void post(struct lane *lane, const char *path, const char *body)
{
	char url[64];
	long status = 0;

	snprintf(url, sizeof(url), "http://127.0.0.1:%u/v3/%s", port, path);
	lane->length = 0;
	curl_easy_setopt(lane->curl, CURLOPT_URL, url);
	curl_easy_setopt(lane->curl, CURLOPT_POSTFIELDS, body);
	if (curl_easy_perform(lane->curl) != CURLE_OK)
		die("etcd: %s", lane->error);
	curl_easy_getinfo(lane->curl, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200)
		die("etcd: %s: %.300s", path, lane->reply);
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

static void *open_lane(const char *key)
{
	struct lane *lane = calloc(1, sizeof(*lane));

	if (!lane || !(lane->curl = curl_easy_init()))
		die("etcd: no lane");
	lane->headers = curl_slist_append(NULL, "Content-Type: application/json");
	curl_easy_setopt(lane->curl, CURLOPT_HTTPHEADER, lane->headers);
	curl_easy_setopt(lane->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(lane->curl, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(lane->curl, CURLOPT_ERRORBUFFER, lane->error);
	curl_easy_setopt(lane->curl, CURLOPT_WRITEFUNCTION, keep);
	curl_easy_setopt(lane->curl, CURLOPT_WRITEDATA, lane);
	base64(key, lane->name, sizeof(lane->name));
	post(lane, "lease/grant", "{\"TTL\":\"" LEASE_S "\"}");
	find(lane, "ID", lane->lease, sizeof(lane->lease));
	return lane;
}

static void close_lane(void *arg)
{
	struct lane *lane = arg;
	char body[64];

	snprintf(body, sizeof(body), "{\"ID\":\"%s\"}", lane->lease);
	post(lane, "lease/revoke", body);
	curl_easy_cleanup(lane->curl);
	curl_slist_free_all(lane->headers);
	free(lane);
}

static void acquire(void *arg)
{
	struct lane *lane = arg;
	char body[256];

	snprintf(body, sizeof(body), "{\"name\":\"%s\",\"lease\":\"%s\"}", lane->name, lane->lease);
	post(lane, "lock/lock", body);
	find(lane, "key", lane->held, sizeof(lane->held));
}

static void release(void *arg)
{
	struct lane *lane = arg;
	char body[320];

	snprintf(body, sizeof(body), "{\"key\":\"%s\"}", lane->held);
	post(lane, "lock/unlock", body);
}

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
};
