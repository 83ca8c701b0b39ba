#include <criterion/criterion.h>
#include <string.h>

#include "core/tls.h"

static struct bl_config config;
static struct bl_tls_words words;
static struct bl_err err;

static void begin(void)
{
	memset(&words, 0, sizeof(words));
	cr_assert_eq(bl_config_init(&config, &err), BIZLOCK_OK);
}

static void end(void)
{
	bl_config_free(&config);
}

TestSuite(tls, .init = begin, .fini = end);

static void take(const char *key, const char *value, enum bl_source source)
{
	cr_expect_eq(bl_tls_take(&words, &config, key, value, source, &err), BIZLOCK_OK, "%s: %s",
	             key, err.msg);
}

static void expect_mode(enum bl_ssl_mode mode)
{
	cr_expect_eq(bl_tls_apply(&words, &config, &err), BIZLOCK_OK, "%s", err.msg);
	cr_expect_eq(config.ssl_mode, mode);
}

Test(tls, what_is_about_it)
{
	static const char *const yes[] = {"ssl",          "ssl_ca",         "skip_ssl",
	                                  "loose_ssl_fp", "disable_ssl",    "loose_skip_ssl",
	                                  "tls_version",  "ssl_no_such_on", "loose_enable_ssl"};
	static const char *const no[] = {"host", "user_ssl", "loose_host", "skip_column_names", ""};

	for (size_t i = 0; i < sizeof(yes) / sizeof(*yes); i++)
		cr_expect(bl_tls_about(yes[i]), "%s", yes[i]);
	for (size_t i = 0; i < sizeof(no) / sizeof(*no); i++)
		cr_expect_not(bl_tls_about(no[i]), "%s", no[i]);
}

Test(tls, nothing_said_changes_nothing)
{
	expect_mode(BL_SSL_PREFERRED);
	cr_expect_eq(config.source[BL_OPT_SSL_MODE], BL_FROM_DEFAULT);
}

Test(tls, switches)
{
	static const struct {
		const char *key, *value;
		enum bl_ssl_mode mode;
	} rows[] = {
	        {"ssl", NULL, BL_SSL_REQUIRED},
	        {"ssl", "1", BL_SSL_REQUIRED},
	        {"ssl", "True", BL_SSL_REQUIRED},
	        {"enable_ssl", NULL, BL_SSL_REQUIRED},
	        {"loose_ssl", "ON", BL_SSL_REQUIRED},
	        {"ssl_enforce", NULL, BL_SSL_REQUIRED},
	        {"ssl", "0", BL_SSL_DISABLED},
	        {"ssl", "off", BL_SSL_DISABLED},
	        {"skip_ssl", NULL, BL_SSL_DISABLED},
	        {"loose_disable_ssl", NULL, BL_SSL_DISABLED},
	        {"ssl_verify_server_cert", NULL, BL_SSL_VERIFY_IDENTITY},
	        {"loose_ssl_verify_server_cert", "on", BL_SSL_VERIFY_IDENTITY},
	        {"ssl_verify_server_cert", "false", BL_SSL_PREFERRED},
	        {"skip_ssl_verify_server_cert", NULL, BL_SSL_PREFERRED},
	        {"loose_ssl_mode", "VERIFY-CA", BL_SSL_VERIFY_CA},
	        {"ssl_ca", "/ca.pem", BL_SSL_VERIFY_CA},
	        {"ssl_capath", "/ca", BL_SSL_VERIFY_CA},
	        {"ssl_crl", "/crl.pem", BL_SSL_VERIFY_CA},
	        {"ssl_fp", "00:11", BL_SSL_REQUIRED},
	        {"ssl_cipher", "A", BL_SSL_PREFERRED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		end();
		begin();
		take(rows[i].key, rows[i].value, BL_FROM_CLIENT_GROUP);
		cr_expect_eq(bl_tls_apply(&words, &config, &err), BIZLOCK_OK);
		cr_expect_eq(config.ssl_mode, rows[i].mode, "%s=%s", rows[i].key, rows[i].value);
	}
}

/* In whatever order they stand. */
Test(tls, of_one_source_the_strictest_counts)
{
	take("ssl_verify_server_cert", NULL, BL_FROM_CLIENT_GROUP);
	take("ssl", NULL, BL_FROM_CLIENT_GROUP);
	take("ssl_mode", "required", BL_FROM_CLIENT_GROUP);
	expect_mode(BL_SSL_VERIFY_IDENTITY);
}

Test(tls, it_is_not_off_where_it_is_to_be_verified)
{
	take("ssl_verify_server_cert", NULL, BL_FROM_CLIENT_GROUP);
	take("skip_ssl", NULL, BL_FROM_CLIENT_GROUP);
	expect_mode(BL_SSL_VERIFY_IDENTITY);
}

Test(tls, a_higher_source_turns_it_off)
{
	take("skip_ssl", NULL, BL_FROM_OWN_GROUP);
	take("ssl_verify_server_cert", NULL, BL_FROM_CLIENT_GROUP);
	take("ssl", NULL, BL_FROM_CLIENT_GROUP);
	take("ssl_ca", "/ca.pem", BL_FROM_CLIENT_GROUP);
	expect_mode(BL_SSL_DISABLED);
}

Test(tls, a_mode_of_a_higher_source_stands)
{
	take("ssl_verify_server_cert", NULL, BL_FROM_OWN_SUFFIX);
	cr_assert_eq(bl_config_set(&config, "ssl_mode", "preferred", BL_FROM_ENV, &err), 0);
	expect_mode(BL_SSL_PREFERRED);
}

Test(tls, the_last_word_of_a_switch_counts)
{
	take("ssl_verify_server_cert", NULL, BL_FROM_CLIENT_GROUP);
	take("ssl_verify_server_cert", "0", BL_FROM_CLIENT_GROUP);
	take("ssl_ca", "/ca.pem", BL_FROM_CLIENT_GROUP);
	expect_mode(BL_SSL_PREFERRED);
}

Test(tls, a_mode_beside_an_authority_stands)
{
	take("ssl_ca", "/ca.pem", BL_FROM_CLIENT_GROUP);
	take("ssl_mode", "required", BL_FROM_CLIENT_GROUP);
	expect_mode(BL_SSL_REQUIRED);
}

Test(tls, a_mode_that_was_set_turns_an_authority_off)
{
	take("ssl_ca", "/ca.pem", BL_FROM_CLIENT_GROUP);
	cr_assert_eq(bl_config_set(&config, "ssl_mode", "disabled", BL_FROM_SET, &err), 0);
	expect_mode(BL_SSL_DISABLED);
}

Test(tls, what_cannot_be_honoured_is_refused)
{
	static const struct {
		const char *key, *value, *named;
	} rows[] = {
	        {"ssl_fips_mode", "ON", "ssl_fips_mode"},
	        {"loose_ssl_fips_mode", NULL, "ssl_fips_mode"},
	        {"ssl", "maybe", "ssl"},
	        {"ssl", "", "ssl"},
	        {"skip_ssl", "1", "ssl"},
	        {"skip_ssl_ca", NULL, "ssl_ca"},
	        {"ssl_ca", NULL, "ssl_ca"},
	        {"ssl_mode", NULL, "ssl_mode"},
	        {"ssl_verify", NULL, "ssl_verify"},
	        {"tls_version", "TLSv1.1,TLSv1.2", "tls_version"},
	        {"tls_version", "", "tls_version"},
	        {"tls_version", "TLSv1.3,", "tls_version"},
	        {"tls_version", "TLSv1", "tls_version"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bl_err_clear(&err);
		cr_expect_eq(bl_tls_take(&words, &config, rows[i].key, rows[i].value,
		                         BL_FROM_CLIENT_GROUP, &err),
		             BIZLOCK_INVALID, "%s=%s", rows[i].key, rows[i].value);
		cr_expect(strstr(err.msg, rows[i].named), "%s", err.msg);
	}
	expect_mode(BL_SSL_PREFERRED);
}

Test(tls, versions_and_plugins_are_lists)
{
	take("tls_version", "TLSv1.2,TLSv1.3", BL_FROM_CLIENT_GROUP);
	cr_expect_str_eq(config.tls_version, "TLSv1.2,TLSv1.3");
	cr_expect_eq(bl_config_set(&config, "auth_plugins", "dialog,mysql_clear_password",
	                           BL_FROM_SET, &err),
	             BIZLOCK_OK);
	cr_expect_eq(bl_config_set(&config, "auth_plugins", "", BL_FROM_SET, &err), BIZLOCK_OK);
	cr_expect_eq(bl_config_set(&config, "auth_plugins", "dialog,", BL_FROM_SET, &err),
	             BIZLOCK_INVALID);
	cr_expect_eq(bl_config_set(&config, "auth_plugins", "../dialog", BL_FROM_SET, &err),
	             BIZLOCK_INVALID);
}
