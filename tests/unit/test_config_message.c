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

static void expect_refused(struct bl_config *c, const char *option, const char *value,
                           enum bl_source source, const char *msg)
{
	struct bl_err err;

	bl_err_clear(&err);
	cr_expect_eq(bl_config_set(c, option, value, source, &err), BIZLOCK_INVALID);
	cr_expect_eq(err.code, BIZLOCK_INVALID);
	cr_expect_str_eq(err.msg, msg);
}

/* A bad value that is hidden by a good one would do harm on another machine. */
Test(config_message, a_value_that_loses_is_checked_too)
{
	struct bl_config c = defaults();

	expect_set(&c, "lease_ms", "500", BL_FROM_SET);
	expect_refused(&c, "lease_ms", "50", BL_FROM_ENV,
	               "option lease_ms: \"50\" is out of range 100 to 86400000 "
	               "(from environment BIZLOCK_LEASE_MS)");
	cr_expect_eq(c.lease_ms, 500);
	bl_config_free(&c);
}

Test(config_message, messages_name_option_limits_and_source)
{
	struct bl_config c = defaults();

	expect_set(&c, "defaults_group", "shop", BL_FROM_SET);
	expect_refused(&c, "port", "70000", BL_FROM_OWN_GROUP,
	               "option port: \"70000\" is out of range 1 to 65535 (from group [shop])");
	expect_refused(&c, "port", "ssh", BL_FROM_CLIENT_GROUP,
	               "option port: \"ssh\" is not a whole number (1 to 65535) "
	               "(from group [client])");
	expect_refused(&c, "queue", "on", BL_FROM_SET,
	               "option queue: \"on\" is none of off, auto (from bizlock_set)");
	expect_refused(&c, "ssl_mode", "yes", BL_FROM_ENV,
	               "option ssl_mode: \"yes\" is none of preferred, disabled, required, "
	               "verify_ca, verify_identity (from environment BIZLOCK_SSL_MODE)");
	expect_refused(&c, "table_prefix", "a-b", BL_FROM_SET,
	               "option table_prefix: \"a-b\" is not 0 to 32 of [A-Za-z0-9_] "
	               "(from bizlock_set)");
	expect_refused(&c, "host", NULL, BL_FROM_SET,
	               "option host has no value (from bizlock_set)");
	expect_refused(&c, "user", "\xc3", BL_FROM_SET,
	               "option user is not valid UTF-8 (from bizlock_set)");
	bl_config_free(&c);
}

/* A long value must neither push limits and source out of the message, nor be cut within a
 * character. */
Test(config_message, long_values_are_shown_in_part)
{
	struct bl_config c = defaults();
	char value[2001], want[300];

	memset(value, 'x', 2000);
	value[2000] = '\0';
	snprintf(want, sizeof(want),
	         "option port: \"%.64s\"... is not a whole number (1 to 65535) (from bizlock_set)",
	         value);
	expect_refused(&c, "port", value, BL_FROM_SET, want);

	memcpy(value + 62, "\xe2\x82\xac", 3);
	snprintf(want, sizeof(want),
	         "option port: \"%.62s\"... is not a whole number (1 to 65535) (from bizlock_set)",
	         value);
	expect_refused(&c, "port", value, BL_FROM_SET, want);

	value[64] = '\0';
	memset(value, 'x', 64);
	snprintf(want, sizeof(want),
	         "option port: \"%.64s\" is not a whole number (1 to 65535) (from bizlock_set)",
	         value);
	expect_refused(&c, "port", value, BL_FROM_SET, want);
	bl_config_free(&c);
}

Test(config_message, the_password_is_never_shown)
{
	struct bl_config c = defaults();
	struct bl_err err;

	bl_err_clear(&err);
	cr_expect_eq(bl_config_set(&c, "password", "s3cr3t\xff", BL_FROM_ENV, &err),
	             BIZLOCK_INVALID);
	cr_expect_null(strstr(err.msg, "s3cr3t"));
	cr_expect_str_eq(err.msg, "option password is not valid UTF-8 "
	                          "(from environment BIZLOCK_PASSWORD)");
	expect_set(&c, "password", "", BL_FROM_SET);
	cr_expect_str_eq(c.password, "", "an empty password is a password");
	bl_config_free(&c);
}

Test(config_message, unknown_options_get_the_nearest_name)
{
	static const struct {
		const char *option, *msg;
	} rows[] = {
	        {"leas_ms", "unknown option \"leas_ms\", did you mean lease_ms?"},
	        {"lease-ms", "unknown option \"lease-ms\", did you mean lease_ms?"},
	        {"lease_mss", "unknown option \"lease_mss\", did you mean lease_ms?"},
	        {"HOst", "unknown option \"HOst\", did you mean host?"},
	        {"sll_ca", "unknown option \"sll_ca\", did you mean ssl_ca?"},
	        {"conect_timeout_m", "unknown option \"conect_timeout_m\", "
	                             "did you mean connect_timeout_ms?"},
	        {"conect_timeot_m", "unknown option \"conect_timeot_m\""},
	        {"HOSt", "unknown option \"HOSt\""},
	        {"", "unknown option \"\""},
	        {"lease", "unknown option \"lease\""},
	        {"a_name_far_longer_than_any_option_has",
	         "unknown option \"a_name_far_longer_than_any_option_has\""},
	        {NULL, "the option's name is NULL"},
	        {"host\xff", "the option's name is not valid UTF-8"},
	};
	struct bl_config c = defaults();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char want[200];

		snprintf(want, sizeof(want), "%s (from bizlock_set)", rows[i].msg);
		expect_refused(&c, rows[i].option, "x", BL_FROM_SET, want);
		snprintf(want, sizeof(want), "%s (from environment)", rows[i].msg);
		expect_refused(&c, rows[i].option, "x", BL_FROM_ENV, want);
	}
	bl_config_free(&c);
}
