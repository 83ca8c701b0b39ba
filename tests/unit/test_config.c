#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"

static struct bl_config defaults(void)
{
	struct bl_config c;
	struct bl_err err;

	cr_assert_eq(bl_config_init(&c, &err), BIZLOCK_OK);
	return c;
}

static void expect_set(struct bl_config *c, const char *option, const char *value,
                       enum bl_source source)
{
	struct bl_err err;

	bl_err_clear(&err);
	cr_expect_eq(bl_config_set(c, option, value, source, &err), BIZLOCK_OK, "%s=%s: %s", option,
	             value, err.msg);
}

Test(config, names_are_the_documented_ones)
{
	static const char *const names[BL_OPT_COUNT] = {
	        "host",
	        "port",
	        "socket",
	        "user",
	        "password",
	        "database",
	        "defaults_file",
	        "defaults_group",
	        "defaults_group_suffix",
	        "ssl_mode",
	        "ssl_ca",
	        "ssl_cert",
	        "ssl_key",
	        "ssl_capath",
	        "ssl_crl",
	        "ssl_crlpath",
	        "ssl_cipher",
	        "ssl_fp",
	        "ssl_fplist",
	        "tls_version",
	        "tls_ciphersuites",
	        "auth_plugins",
	        "table_prefix",
	        "lease_ms",
	        "renew",
	        "max_hold_ms",
	        "release_on_close",
	        "connect_timeout_ms",
	        "open_wait_ms",
	        "io_timeout_ms",
	        "max_connections",
	        "queue",
	        "combine",
	        "runtime_dir",
	};
	/* exec gives its command BIZLOCK_TYPE and so on, which are no options of a client there. */
	static const char *const of_exec[] = {"type",  "id",   "fence",    "owner",
	                                      "outer", "slot", "took_over"};

	for (int i = 0; i < BL_OPT_COUNT; i++) {
		cr_expect_str_eq(bl_option_name((enum bl_option)i), names[i]);
		cr_expect(bl_config_known(names[i]));
	}
	for (size_t i = 0; i < sizeof(of_exec) / sizeof(of_exec[0]); i++)
		cr_expect_not(bl_config_known(of_exec[i]));
	cr_expect_not(bl_config_known("hosts"));
	cr_expect_not(bl_config_known("HOST"));
	cr_expect_not(bl_config_known("lease-ms"));
	cr_expect_not(bl_config_known(""));
	cr_expect_not(bl_config_known(NULL));
}

/* bizlock(1) gives its children BIZLOCK_TYPE and so on. An option with such a name would be read
 * from there. */
Test(config, what_exec_tells_its_child_is_no_option)
{
	cr_expect_not(bl_config_known("type"));
	cr_expect_not(bl_config_known("id"));
	cr_expect_not(bl_config_known("fence"));
	cr_expect_not(bl_config_known("owner"));
}

static void expect_defaults(const struct bl_config *c)
{
	cr_expect_null(c->host);
	cr_expect_null(c->socket);
	cr_expect_null(c->user);
	cr_expect_null(c->password);
	cr_expect_null(c->database);
	cr_expect_null(c->defaults_file);
	cr_expect_str_eq(c->defaults_group, "bizlock");
	cr_expect_str_eq(c->defaults_group_suffix, "");
	cr_expect_null(c->ssl_ca);
	cr_expect_null(c->ssl_cert);
	cr_expect_null(c->ssl_key);
	cr_expect_null(c->ssl_capath);
	cr_expect_null(c->ssl_fp);
	cr_expect_null(c->tls_version);
	cr_expect_str_eq(c->auth_plugins, "");
	cr_expect_str_eq(c->table_prefix, "");
	cr_expect_eq(c->port, 0);
	cr_expect_eq(c->lease_ms, 30000);
	cr_expect_eq(c->connect_timeout_ms, 5000);
	cr_expect_eq(c->open_wait_ms, 0);
	cr_expect_eq(c->io_timeout_ms, 10000);
	cr_expect_eq(c->max_connections, 16);
	cr_expect_eq(c->ssl_mode, BL_SSL_PREFERRED);
	cr_expect(c->queue);
	cr_expect(c->combine);
	for (int i = 0; i < BL_OPT_COUNT; i++)
		cr_expect_eq(c->source[i], BL_FROM_DEFAULT);
}

Test(config, init_gives_the_documented_defaults)
{
	struct bl_config c;
	struct bl_err err;

	memset(&c, 0xff, sizeof(c)); /* the call must not look at what was there */
	cr_assert_eq(bl_config_init(&c, &err), BIZLOCK_OK);
	expect_defaults(&c);
	bl_config_free(&c);
}

Test(config, free_takes_zero_and_twice)
{
	struct bl_config zero, c = defaults();

	memset(&zero, 0, sizeof(zero));
	bl_config_free(&zero);
	bl_config_free(&c);
	bl_config_free(&c);
	cr_expect_null(c.defaults_group);
}

Test(config, every_option_can_be_set)
{
	struct bl_config c = defaults();

	for (int i = 0; i < BL_OPT_COUNT; i++) {
		const char *name = bl_option_name((enum bl_option)i);
		bool choice = i == BL_OPT_QUEUE || i == BL_OPT_COMBINE || i == BL_OPT_RENEW ||
		              i == BL_OPT_RELEASE_ON_CLOSE;
		const char *value = i == BL_OPT_SSL_MODE      ? "required"
		                    : i == BL_OPT_TLS_VERSION ? "TLSv1.3"
		                    : i == BL_OPT_RUNTIME_DIR ? "/run/user/123"
		                    : choice                  ? "off"
		                                              : "123";

		expect_set(&c, name, value, BL_FROM_ENV);
		cr_expect_eq(c.source[i], BL_FROM_ENV);
	}
	cr_expect_str_eq(c.host, "123");
	cr_expect_str_eq(c.socket, "123");
	cr_expect_str_eq(c.user, "123");
	cr_expect_str_eq(c.password, "123");
	cr_expect_str_eq(c.database, "123");
	cr_expect_str_eq(c.defaults_file, "123");
	cr_expect_str_eq(c.defaults_group, "123");
	cr_expect_str_eq(c.ssl_ca, "123");
	cr_expect_str_eq(c.ssl_cert, "123");
	cr_expect_str_eq(c.ssl_key, "123");
	cr_expect_str_eq(c.ssl_capath, "123");
	cr_expect_str_eq(c.ssl_crl, "123");
	cr_expect_str_eq(c.ssl_crlpath, "123");
	cr_expect_str_eq(c.ssl_cipher, "123");
	cr_expect_str_eq(c.ssl_fp, "123");
	cr_expect_str_eq(c.ssl_fplist, "123");
	cr_expect_str_eq(c.tls_version, "TLSv1.3");
	cr_expect_str_eq(c.tls_ciphersuites, "123");
	cr_expect_str_eq(c.auth_plugins, "123");
	cr_expect_str_eq(c.table_prefix, "123");
	cr_expect_eq(c.port, 123);
	cr_expect_eq(c.lease_ms, 123);
	cr_expect_eq(c.connect_timeout_ms, 123);
	cr_expect_eq(c.io_timeout_ms, 123);
	cr_expect_eq(c.max_connections, 123);
	cr_expect_eq(c.ssl_mode, BL_SSL_REQUIRED);
	cr_expect_not(c.queue);
	bl_config_free(&c);
}

Test(config, values_are_copied)
{
	struct bl_config c = defaults();
	char user[] = "me";

	expect_set(&c, "user", user, BL_FROM_SET);
	user[0] = '?';
	cr_expect_str_eq(c.user, "me");
	bl_config_free(&c);
}

/* Each source against each other: a source overwrites itself and lower ones. */
Test(config, sources_have_their_precedence)
{
	for (int first = BL_FROM_DEFAULT; first <= BL_FROM_SET; first++) {
		for (int second = BL_FROM_DEFAULT; second <= BL_FROM_SET; second++) {
			struct bl_config c = defaults();
			bool wins = second >= first;

			expect_set(&c, "user", "first", (enum bl_source)first);
			expect_set(&c, "lease_ms", "111", (enum bl_source)first);
			expect_set(&c, "queue", "off", (enum bl_source)first);
			expect_set(&c, "user", "second", (enum bl_source)second);
			expect_set(&c, "lease_ms", "222", (enum bl_source)second);
			expect_set(&c, "queue", "auto", (enum bl_source)second);
			cr_expect_str_eq(c.user, wins ? "second" : "first", "%d, %d", first,
			                 second);
			cr_expect_eq(c.lease_ms, wins ? 222 : 111, "%d, %d", first, second);
			cr_expect_eq(c.queue, wins, "%d, %d", first, second);
			cr_expect_eq((int)c.source[BL_OPT_USER], wins ? second : first);
			bl_config_free(&c);
		}
	}
}

Test(config, a_refused_value_changes_nothing)
{
	struct bl_config c = defaults();
	struct bl_err err;

	for (int i = 0; i < BL_OPT_COUNT; i++) {
		const char *name = bl_option_name((enum bl_option)i);

		cr_expect_eq(bl_config_set(&c, name, NULL, BL_FROM_SET, &err), BIZLOCK_INVALID);
		cr_expect_eq(bl_config_set(&c, name, "\xff", BL_FROM_SET, &err), BIZLOCK_INVALID);
	}
	expect_defaults(&c);
	bl_config_free(&c);
}

static const struct {
	const char *option;
	uint32_t min, max;
} numbers[] = {
        {"port", 1, 65535},
        {"lease_ms", 100, 86400000},
        {"connect_timeout_ms", 1, 600000},
        {"io_timeout_ms", 1, 600000},
        {"max_connections", 1, 1000},
};

static int try_number(struct bl_config *c, const char *option, uint64_t value)
{
	struct bl_err err;
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return bl_config_set(c, option, text, BL_FROM_SET, &err);
}

Test(config, number_limits_are_exact)
{
	struct bl_config c = defaults();

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		const char *o = numbers[i].option;

		cr_expect_eq(try_number(&c, o, numbers[i].min), BIZLOCK_OK, "%s", o);
		cr_expect_eq(try_number(&c, o, numbers[i].max), BIZLOCK_OK, "%s", o);
		cr_expect_eq(try_number(&c, o, numbers[i].min - 1), BIZLOCK_INVALID, "%s", o);
		cr_expect_eq(try_number(&c, o, numbers[i].max + 1), BIZLOCK_INVALID, "%s", o);
		cr_expect_eq(try_number(&c, o, 4294967296u + numbers[i].min), BIZLOCK_INVALID);
		cr_expect_eq(try_number(&c, o, UINT64_MAX), BIZLOCK_INVALID, "%s", o);
	}
	cr_expect_eq(c.port, 65535);
	cr_expect_eq(c.lease_ms, 86400000);
	cr_expect_eq(c.max_connections, 1000);
	bl_config_free(&c);
}

Test(config, numbers_are_digits_alone)
{
	static const char *const bad[] = {"",      " ",     " 500",  "500 ",  "+500", "-500", "5e2",
	                                  "0x1f4", "500ms", "500.0", "1,000", "five", "500\n"};
	static const char *const over[] = {
	        "18446744073709552116",                      /* 2^64 + 500 */
	        "99999999999999999999999999999999999999999", /* a large number */
	};
	struct bl_config c = defaults();
	struct bl_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cr_expect_eq(bl_config_set(&c, "lease_ms", bad[i], BL_FROM_SET, &err),
		             BIZLOCK_INVALID, "\"%s\"", bad[i]);
		cr_expect_not_null(strstr(err.msg, "not a whole number"), "%s", err.msg);
	}
	for (size_t i = 0; i < sizeof(over) / sizeof(*over); i++) {
		cr_expect_eq(bl_config_set(&c, "lease_ms", over[i], BL_FROM_SET, &err),
		             BIZLOCK_INVALID);
		cr_expect_not_null(strstr(err.msg, "out of range 100 to 86400000"), "%s", err.msg);
	}
	cr_expect_eq(c.lease_ms, 30000);
	expect_set(&c, "lease_ms", "000000000000000000000000500", BL_FROM_SET);
	cr_expect_eq(c.lease_ms, 500);
	bl_config_free(&c);
}

/* The limits of the option and of a call are the same; "none" has two forms, because 0 in a call
 * means the option. */
Test(config, how_long_a_hold_may_last)
{
	static const struct {
		const char *option;
		uint32_t asked, most;
	} cases[] = {
	        {"0", 0, 0},          {"0", UINT32_MAX, 0},    {"0", 1, 100},
	        {"0", 101, 101},      {"99", 0, 100},          {"100", 0, 100},
	        {"500", 0, 500},      {"500", 400, 400},       {"500", UINT32_MAX, 0},
	        {"4294967295", 0, 0}, {"4294967295", 70, 100}, {"4294967294", 0, UINT32_MAX - 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct bl_config c = defaults();

		expect_set(&c, "max_hold_ms", cases[i].option, BL_FROM_SET);
		cr_expect_eq(bl_config_max_hold_ms(&c, cases[i].asked), cases[i].most, "%s, %u",
		             cases[i].option, (unsigned)cases[i].asked);
		bl_config_free(&c);
	}
}

Test(config, ssl_modes)
{
	static const struct {
		const char *value;
		int mode; /* -1: refused */
	} rows[] = {
	        {"preferred", BL_SSL_PREFERRED},
	        {"disabled", BL_SSL_DISABLED},
	        {"required", BL_SSL_REQUIRED},
	        {"verify_ca", BL_SSL_VERIFY_CA},
	        {"VERIFY_CA", BL_SSL_VERIFY_CA},
	        {"verify-identity", BL_SSL_VERIFY_IDENTITY},
	        {"Verify_Identity", BL_SSL_VERIFY_IDENTITY},
	        {"PREFERRED", BL_SSL_PREFERRED},
	        {"", -1},
	        {"require", -1},
	        {"requiredd", -1},
	        {"on", -1},
	        {"1", -1},
	        {" required", -1},
	};
	struct bl_config c = defaults();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bl_err err;
		int rc = bl_config_set(&c, "ssl_mode", rows[i].value, BL_FROM_SET, &err);

		cr_expect_eq(rc, rows[i].mode < 0 ? BIZLOCK_INVALID : BIZLOCK_OK, "%s",
		             rows[i].value);
		if (rc == BIZLOCK_OK)
			cr_expect_eq((int)c.ssl_mode, rows[i].mode, "%s", rows[i].value);
	}
	bl_config_free(&c);
}

Test(config, table_prefix_is_what_needs_no_quoting)
{
	static const struct {
		const char *value;
		bool valid;
	} rows[] = {
	        {"", true},
	        {"Shop_2_", true},
	        {"abcdefghijklmnopqrstuvwxyz012345", true},
	        {"ABCDEFGHIJKLMNOPQRSTUVWXYZ6789__", true},
	        {"abcdefghijklmnopqrstuvwxyz0123456", false},
	        {"a-b", false},
	        {"a.b", false},
	        {"`", false},
	        {"a b", false},
	        {"\xc3\xa1", false},
	};
	struct bl_config c = defaults();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bl_err err;

		cr_expect_eq(bl_config_set(&c, "table_prefix", rows[i].value, BL_FROM_SET, &err),
		             rows[i].valid ? BIZLOCK_OK : BIZLOCK_INVALID, "%s", rows[i].value);
		if (rows[i].valid)
			cr_expect_str_eq(c.table_prefix, rows[i].value);
	}
	bl_config_free(&c);
}

Test(config, a_copy_is_equal_and_its_own)
{
	struct bl_config c = defaults(), copy;
	struct bl_err err;

	expect_set(&c, "user", "me", BL_FROM_SET);
	expect_set(&c, "password", "s3cr3t", BL_FROM_ENV);
	expect_set(&c, "lease_ms", "500", BL_FROM_OWN_GROUP);
	expect_set(&c, "ssl_mode", "required", BL_FROM_CLIENT_GROUP);
	expect_set(&c, "queue", "off", BL_FROM_SET);
	memset(&copy, 0, sizeof(copy));
	cr_assert_eq(bl_config_copy(&copy, &c, &err), BIZLOCK_OK);
	cr_expect_neq(copy.user, c.user);
	bl_config_free(&c);

	cr_expect_str_eq(copy.user, "me");
	cr_expect_str_eq(copy.password, "s3cr3t");
	cr_expect_str_eq(copy.defaults_group, "bizlock");
	cr_expect_null(copy.host);
	cr_expect_eq(copy.lease_ms, 500);
	cr_expect_eq(copy.ssl_mode, BL_SSL_REQUIRED);
	cr_expect_not(copy.queue);
	cr_expect_eq(copy.source[BL_OPT_PASSWORD], BL_FROM_ENV);
	cr_expect_eq(copy.source[BL_OPT_HOST], BL_FROM_DEFAULT);
	bl_config_free(&copy);
}
