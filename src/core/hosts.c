#include "core/hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One entry, as its parts stand in the list. */
struct entry {
	const char *name, *port; /* port: NULL if there is none */
	size_t name_len, port_len;
	bool odd; /* has a bracket that is not around the name, or something behind the pair */
};

static struct entry split(const char *text, size_t len)
{
	struct entry e = {.name = text, .name_len = len};
	const char *end = text + len, *close = memchr(text, ']', len), *colon = NULL;

	if (len > 0 && text[0] == '[') {
		close = close ? close : end;
		e.name = text + 1;
		e.name_len = (size_t)(close - e.name);
		if (end - close > 1 && close[1] == ':')
			colon = close + 1;
		e.odd = end - close != 1 && !colon;
	} else {
		colon = memchr(text, ':', len);
		if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
			colon = NULL; /* an IPv6 address */
		if (colon)
			e.name_len = (size_t)(colon - text);
	}
	e.odd = e.odd || memchr(e.name, '[', e.name_len) || memchr(e.name, ']', e.name_len);
	if (colon) {
		e.port = colon + 1;
		e.port_len = (size_t)(end - e.port);
	}
	return e;
}

/* 0: not a port. */
static uint32_t port_of(const struct entry *e)
{
	uint32_t port = 0;

	if (e->port_len > 5)
		return 0;
	for (size_t i = 0; i < e->port_len; i++) {
		if (e->port[i] < '0' || e->port[i] > '9')
			return 0;
		port = 10 * port + (uint32_t)(e->port[i] - '0');
	}
	return port <= 65535 ? port : 0;
}

int bl_hosts_check(const char *list, struct bl_err *err)
{
	for (const char *at = list;; at++) {
		size_t len = strcspn(at, ",");
		struct entry e = split(at, len);

		if (e.name_len == 0 || e.name_len >= sizeof(((struct bl_host *)0)->name))
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "option host: a host of the list is empty or too long");
		if (e.odd)
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "option host: brackets stand around an address, with "
			                  "nothing but a port behind them");
		if (e.port && port_of(&e) == 0)
			return bl_err_set(err, BIZLOCK_INVALID,
			                  "option host: \"%.*s\" is no port (1 to 65535)",
			                  (int)(e.port_len < 16 ? e.port_len : 16), e.port);
		at += len;
		if (!*at)
			return BIZLOCK_OK;
	}
}

struct bl_host bl_hosts_next(const char **at)
{
	struct bl_host ret = {.name = ""};
	struct entry e;
	size_t len;

	if (!*at)
		return ret;
	len = strcspn(*at, ",");
	e = split(*at, len);
	snprintf(ret.name, sizeof(ret.name), "%.*s", (int)e.name_len, e.name);
	ret.port = e.port ? port_of(&e) : 0;
	*at += len;
	if (**at)
		++*at;
	return ret;
}

bool bl_hosts_several(const char *list)
{
	return list && strchr(list, ',');
}
