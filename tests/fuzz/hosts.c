/* core/hosts.h. The input is a list. */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "common/fuzz.h"
#include "core/hosts.h"

static bool is_port(const char *text, uint32_t port)
{
	return text[strspn(text, "0123456789")] == '\0' && strtoul(text, NULL, 10) == port;
}

/* Is the entry this host as a user may write it, and nothing else? A word that the parser
 * drops (a port behind a missing colon, say) would lead to another server than was meant. */
static bool says(const char *entry, size_t len, const struct bl_host *host)
{
	size_t name = strlen(host->name);
	char *text = fuzz_text((const uint8_t *)entry, len), *rest = text;
	bool brackets = text[0] == '[' && strchr(text, ']'), ret;

	rest += brackets;
	ret = strncmp(rest, host->name, name) == 0;
	rest += ret ? name : 0;
	if (brackets)
		ret = ret && *rest++ == ']';
	ret = ret && (host->port ? *rest == ':' && is_port(rest + 1, host->port) : !*rest);
	free(text);
	return ret;
}

static void check_host(const struct bl_host *host)
{
	size_t len = strnlen(host->name, sizeof(host->name));

	assert(len > 0 && len < sizeof(host->name));
	assert(!strpbrk(host->name, "[],"));
	assert(host->port <= 65535);
}

static void write_host(struct bl_buf *to, const struct bl_host *host)
{
	bool brackets = strchr(host->name, ':') != NULL;

	bl_buf_addf(to, brackets ? "%s[%s]" : "%s%s", to->len > 0 ? "," : "", host->name);
	if (host->port)
		bl_buf_addf(to, ":%" PRIu32, host->port);
}

static void check_again(const char *list, const char *again)
{
	struct bl_err err;

	assert(bl_hosts_check(again, &err) == BIZLOCK_OK);
	while (*list) {
		struct bl_host a = bl_hosts_next(&list), b = bl_hosts_next(&again);

		assert(strcmp(a.name, b.name) == 0 && a.port == b.port);
	}
	assert(!*again);
}

static void check_list(const char *list)
{
	struct bl_buf again = BL_BUF_INIT(1 << 20);
	const char *at = list, *end = list + strlen(list);
	size_t count = 0;

	while (*at) {
		const char *entry = at;
		struct bl_host host = bl_hosts_next(&at);

		assert(at > entry && at <= end);
		check_host(&host);
		assert(says(entry, strcspn(entry, ","), &host));
		write_host(&again, &host);
		count++;
	}
	assert(!again.failed && count > 0);
	assert(bl_hosts_several(list) == (count > 1));
	check_again(list, again.data);
	bl_buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *list = fuzz_text(data, size);
	struct bl_err err;
	int rc = bl_hosts_check(list, &err);

	if (rc == BIZLOCK_OK)
		check_list(list);
	else
		fuzz_check_error(&err, BIZLOCK_INVALID);
	free(list);
	return 0;
}
