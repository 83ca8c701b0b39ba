/* core/config.h. The input is lines "SOURCE OPTION=VALUE" without the blank, SOURCE being a
 * digit of enum bl_source. */
#include "core/config.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/fuzz.h"
#include "core/hosts.h"

static void check_limits(const struct bl_config *c)
{
	struct bl_err err;

	assert(c->port <= 65535 && (c->port > 0 || c->source[BL_OPT_PORT] == BL_FROM_DEFAULT));
	assert(c->lease_ms >= BIZLOCK_LEASE_MIN_MS && c->lease_ms <= BIZLOCK_LEASE_MAX_MS);
	assert(c->connect_timeout_ms >= 1 && c->connect_timeout_ms <= 600000);
	assert(c->io_timeout_ms >= 1 && c->io_timeout_ms <= 600000);
	assert(c->max_connections >= 1 && c->max_connections <= 1000);
	assert(c->ssl_mode <= BL_SSL_VERIFY_IDENTITY);
	assert(c->queue <= 1 && c->combine <= 1 && c->renew <= 1 && c->release_on_close <= 1);
	assert(strlen(c->table_prefix) <= BL_PREFIX_MAX);
	assert(!strpbrk(c->table_prefix, "`'\"\\.%-; \n"));
	assert(!c->host || bl_hosts_check(c->host, &err) == BIZLOCK_OK);
}

/* The options that take numbers keep the number that was written. */
static void check_number(const struct bl_config *c, const char *option, const char *value)
{
	const struct {
		const char *name;
		uint32_t number;
	} numbers[] = {{"port", c->port},
	               {"lease_ms", c->lease_ms},
	               {"max_hold_ms", c->max_hold_ms},
	               {"connect_timeout_ms", c->connect_timeout_ms},
	               {"io_timeout_ms", c->io_timeout_ms},
	               {"max_connections", c->max_connections}};
	char text[16];

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(numbers[i].name, option) != 0)
			continue;
		value += strspn(value, "0");
		value -= !*value;
		snprintf(text, sizeof(text), "%" PRIu32, numbers[i].number);
		assert(strcmp(text, value) == 0);
	}
}

static enum bl_option place_of(const char *option)
{
	for (int i = 0; i < BL_OPT_COUNT; i++)
		if (strcmp(bl_option_name((enum bl_option)i), option) == 0)
			return (enum bl_option)i;
	return BL_OPT_COUNT;
}

static void check_set(struct bl_config *c, const char *option, const char *value,
                      enum bl_source source)
{
	struct bl_config before = *c; /* its pointers, too: nothing may be stored anew */
	enum bl_option place = place_of(option);
	struct bl_err err;
	int rc = bl_config_set(c, option, value, source, &err);

	assert(bl_config_known(option) == (place < BL_OPT_COUNT));
	check_limits(c);
	if (rc != BIZLOCK_OK) {
		fuzz_check_error(&err, BIZLOCK_INVALID);
		assert(memcmp(&before, c, sizeof(before)) == 0);
		assert(strcmp(option, "password") != 0 || !strstr(err.msg, value));
		return;
	}
	assert(place < BL_OPT_COUNT && fuzz_utf8(value, strlen(value)));
	if (source < before.source[place]) {
		assert(memcmp(&before, c, sizeof(before)) == 0);
		return;
	}
	assert(c->source[place] == source);
	check_number(c, option, value);
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? a != b && strcmp(a, b) == 0 : a == b;
}

static void check_copy(const struct bl_config *c)
{
	struct bl_config copy;
	struct bl_err err;

	assert(bl_config_copy(&copy, c, &err) == BIZLOCK_OK);
	assert(same_text(copy.host, c->host) && same_text(copy.socket, c->socket));
	assert(same_text(copy.user, c->user) && same_text(copy.password, c->password));
	assert(same_text(copy.database, c->database) && same_text(copy.ssl_ca, c->ssl_ca));
	assert(same_text(copy.table_prefix, c->table_prefix));
	assert(copy.lease_ms == c->lease_ms && copy.port == c->port);
	assert(memcmp(copy.source, c->source, sizeof(copy.source)) == 0);
	bl_config_free(&copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bl_config c;
	struct bl_err err;

	assert(bl_config_init(&c, &err) == BIZLOCK_OK);
	check_limits(&c);
	while (size > 0) {
		unsigned source = (unsigned)(*data - '0') % (BL_FROM_SET + 1);
		char *option, *value, *line = fuzz_next(&data, &size, '\n');
		const uint8_t *at = (const uint8_t *)line + (line[0] != '\0');
		size_t len = strlen((const char *)at);

		option = fuzz_next(&at, &len, '=');
		value = fuzz_next(&at, &len, '\n');
		check_set(&c, option, value, (enum bl_source)source);
		free(option);
		free(value);
		free(line);
	}
	check_copy(&c);
	bl_config_free(&c);
	return 0;
}
