/* Bad input: INVALID, with the argument and its limit in the message, outputs
 * untouched, and nothing sent. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

static struct proxy *proxy;
static bizlock *b;
static unsigned packets;

static void begin(void)
{
	world_begin();
	proxy = proxy_start(&world.at, "127.0.0.1");
	b = client_through(proxy, NULL);
	works(b);
	packets = proxy_packets(proxy);
}

/* No test of this suite may have sent anything to the server. */
static void end(void)
{
	unsigned now = proxy_packets(proxy);

	cr_assert_eq(now, packets, "%u packets were sent", now - packets);
	works(b);
	proxy_stop(proxy);
	world_end();
}

TestSuite(input, .init = begin, .fini = end, .timeout = 240);

#define expect_invalid(call, word)                                                                 \
	do {                                                                                       \
		expect(INVALID, b, (call));                                                        \
		expect_message(b, (word));                                                         \
	} while (0)

static int never(void *arg, const bizlock_info *info)
{
	(void)arg;
	(void)info;
	die("called");
}

/* ---- keys ------------------------------------------------------------------- */

static void bad_key(bizlock_key key, const char *word)
{
	bizlock_grant grant = {sizeof(grant), 11, 22, 33, 44, 0};
	uint32_t depth = 55;

	expect_invalid(bizlock_acquire(b, key, NULL, &grant), word);
	cr_assert(grant.fence == 11 && grant.depth == 22 && grant.lease_ms == 33 &&
	          grant.flags == 44);
	expect_invalid(bizlock_release(b, key, NULL, &depth), word);
	cr_assert_eq(depth, 55);
	expect_invalid(bizlock_renew(b, key, NULL, 0), word);
	expect_invalid(bizlock_verify(b, key, NULL), word);
	expect_invalid(bizlock_break(b, key, 1), word);
	cr_assert_leq(bizlock_left_ms(b, key, NULL), 0);
}

Test(input, keys_that_are_missing_or_empty)
{
	bad_key((bizlock_key){NULL, "id"}, "biz_type");
	bad_key((bizlock_key){"type", NULL}, "biz_id");
	bad_key((bizlock_key){"", "id"}, "biz_type");
	bad_key((bizlock_key){"type", ""}, "biz_id");
}

Test(input, keys_that_are_too_long)
{
	char text[1000] = "";

	memset(text, 'x', BIZLOCK_TYPE_MAX + 1);
	bad_key((bizlock_key){text, "id"}, "biz_type");
	bad_key((bizlock_key){text, "id"}, "64");
	memset(text, 'x', BIZLOCK_ID_MAX + 1);
	bad_key((bizlock_key){"type", text}, "biz_id");
	bad_key((bizlock_key){"type", text}, "128");
	memset(text, 'x', sizeof(text) - 1);
	bad_key((bizlock_key){"type", text}, "128");
	bad_key((bizlock_key){text, "id"}, "64");
}

static const char *const not_utf8[] = {
        "\xff",             /* never a byte of UTF-8 */
        "a\x80",            /* a second byte without a first */
        "\xc3",             /* cut off */
        "\xf0\x9f\x94",     /* cut off */
        "\xc0\xaf",         /* overlong '/' */
        "\xe0\x80\xaf",     /* overlong '/' */
        "\xed\xa0\x80",     /* half a surrogate pair */
        "\xf4\x90\x80\x80", /* past the last code point */
        "\xe9t\xe9",        /* Latin-1 */
};

#define NOT_UTF8 (sizeof(not_utf8) / sizeof(not_utf8[0]))

Test(input, keys_that_are_not_utf8)
{
	for (size_t i = 0; i < NOT_UTF8; i++) {
		bad_key((bizlock_key){not_utf8[i], "id"}, "biz_type");
		bad_key((bizlock_key){"type", not_utf8[i]}, "biz_id");
		bad_key((bizlock_key){"type", not_utf8[i]}, "UTF-8");
	}
}

/* ---- options of an acquisition ------------------------------------------------ */

static bizlock_acquire_opts good(void)
{
	return (bizlock_acquire_opts)BIZLOCK_ACQUIRE_OPTS_INIT;
}

static void bad_opts(bizlock_acquire_opts opts, const char *word)
{
	bizlock_grant grant = {sizeof(grant), 11, 22, 33, 44, 0};

	expect_invalid(bizlock_acquire(b, KEY("k"), &opts, &grant), word);
	cr_assert(grant.fence == 11 && grant.depth == 22 && grant.lease_ms == 33 &&
	          grant.flags == 44);
}

Test(input, waits_below_for_ever)
{
	bizlock_acquire_opts opts = good();

	opts.wait_ms = -2;
	bad_opts(opts, "wait_ms");
	opts.wait_ms = INT64_MIN;
	bad_opts(opts, "wait_ms");
}

Test(input, leases_out_of_range)
{
	static const uint32_t leases[] = {1, 99, 86400001, UINT32_MAX};
	bizlock_acquire_opts opts = good();

	for (int i = 0; i < 4; i++) {
		opts.lease_ms = leases[i];
		bad_opts(opts, "lease_ms");
		bad_opts(opts, "86400000");
		expect_invalid(bizlock_renew(b, KEY("k"), NULL, leases[i]), "lease_ms");
	}
}

Test(input, unknown_flags)
{
	bizlock_acquire_opts opts = good();

	for (int bit = 4; bit < 32; bit++) {
		opts.flags = BIZLOCK_NO_RENEW | 1u << bit;
		bad_opts(opts, "flags");
	}
}

static void bad_owner(const char *owner)
{
	bizlock_acquire_opts opts = good();

	opts.owner = owner;
	bad_opts(opts, "owner");
	expect_invalid(bizlock_release(b, KEY("k"), owner, NULL), "owner");
	expect_invalid(bizlock_renew(b, KEY("k"), owner, 0), "owner");
	expect_invalid(bizlock_verify(b, KEY("k"), owner), "owner");
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), owner), 0);
}

Test(input, owners_that_could_be_mistaken)
{
	char text[BIZLOCK_OWNER_NAME_MAX + 2] = "";

	bad_owner("");
	bad_owner("a b");
	bad_owner("a@b");
	bad_owner("4711"); /* like a thread */
	bad_owner("tab\t");
	bad_owner("del\x7f");
	bad_owner("caf\xc3\xa9");
	memset(text, 'x', BIZLOCK_OWNER_NAME_MAX + 1);
	bad_owner(text);
}

Test(input, notes_that_are_too_long_or_not_utf8)
{
	bizlock_acquire_opts opts = good();
	char text[BIZLOCK_NOTE_MAX + 2] = "";

	memset(text, 'x', BIZLOCK_NOTE_MAX + 1);
	opts.note = text;
	bad_opts(opts, "note");
	bad_opts(opts, "255");
	for (size_t i = 0; i < NOT_UTF8; i++) {
		opts.note = not_utf8[i];
		bad_opts(opts, "note");
	}
}

/* ---- sizes of structs ----------------------------------------------------------- */

struct later_opts {
	bizlock_acquire_opts known;
	uint64_t added[4];
};

struct later_grant {
	bizlock_grant known;
	uint64_t added[4];
};

Test(input, sizes_that_no_version_had)
{
	bizlock_acquire_opts opts = good();
	bizlock_grant grant = {sizeof(grant), 11, 22, 33, 44, 0};

	opts.size = 0;
	bad_opts(opts, "size");
	opts.size = sizeof(size_t);
	bad_opts(opts, "size");
	opts.size = sizeof(opts) - 1;
	bad_opts(opts, "size");
	grant.size = 0;
	expect_invalid(bizlock_acquire(b, KEY("k"), NULL, &grant), "size");
	grant.size = sizeof(grant) - 1;
	expect_invalid(bizlock_acquire(b, KEY("k"), NULL, &grant), "size");
	cr_assert_eq(grant.fence, 11);
}

Test(input, reserved_fields_are_0)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_reap_opts reap = BIZLOCK_REAP_OPTS_INIT;

	cr_assert(opts.reserved == 0 && reap.reserved == 0);
	opts.reserved = 1;
	bad_opts(opts, "reserved");
	reap.reserved = 1;
	expect_invalid(bizlock_reap(b, &reap, NULL), "reserved");
}

Test(input, a_later_version_that_asks_for_something_unknown)
{
	struct later_opts opts = {.known = BIZLOCK_ACQUIRE_OPTS_INIT};

	opts.known.size = sizeof(opts);
	for (size_t i = 0; i < sizeof(opts.added); i++) {
		memset(opts.added, 0, sizeof(opts.added));
		((unsigned char *)opts.added)[i] = 1;
		expect_invalid(bizlock_acquire(b, KEY("k"), &opts.known, NULL), "size");
	}
}

/* ---- the rest -------------------------------------------------------------------- */

Test(input, missing_arguments)
{
	expect_invalid(bizlock_each(b, NULL, NULL, NULL), "fn");
	expect_invalid(bizlock_each(b, "", never, NULL), "biz_type");
	expect_invalid(bizlock_each(b, "\xff", never, NULL), "biz_type");
	expect_invalid(bizlock_look(b, KEY("k"), NULL, NULL), "fn");
	expect_invalid(bizlock_look(b, KEY(""), never, NULL), "biz_id");
	cr_assert_eq(bizlock_new(NULL), BIZLOCK_INVALID);
}

Test(input, a_missing_client)
{
	cr_assert_eq(bizlock_set(NULL, "host", "x"), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_open(NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_migrate(NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_acquire(NULL, KEY("k"), NULL, NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_release(NULL, KEY("k"), NULL, NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_renew(NULL, KEY("k"), NULL, 0), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_verify(NULL, KEY("k"), NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_each(NULL, NULL, never, NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_look(NULL, KEY("k"), never, NULL), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_break(NULL, KEY("k"), 1), BIZLOCK_INVALID);
	cr_assert_leq(bizlock_left_ms(NULL, KEY("k"), NULL), 0);
	bizlock_interrupt(NULL);
	bizlock_close(NULL);
}

Test(input, bad_options)
{
	static const struct {
		const char *option, *value, *word;
	} bad[] = {
	        {NULL, "x", "option"},
	        {"no_such_option", "x", "no_such_option"},
	        {"lease_m", "1000", "lease_m"},
	        {"", "x", "option"},
	        {"lease_ms", NULL, "lease_ms"},
	        {"lease_ms", "", "lease_ms"},
	        {"lease_ms", "99", "100"},
	        {"lease_ms", "86400001", "86400000"},
	        {"lease_ms", "-1", "lease_ms"},
	        {"lease_ms", "30s", "lease_ms"},
	        {"lease_ms", " 30000", "lease_ms"},
	        {"lease_ms", "99999999999999999999", "lease_ms"},
	        {"port", "0", "port"},
	        {"port", "65536", "65535"},
	        {"port", "mysql", "port"},
	        {"connect_timeout_ms", "0", "connect_timeout_ms"},
	        {"connect_timeout_ms", "600001", "600000"},
	        {"io_timeout_ms", "0", "io_timeout_ms"},
	        {"io_timeout_ms", "600001", "600000"},
	        {"max_connections", "0", "max_connections"},
	        {"max_connections", "1001", "1000"},
	        {"queue", "on", "auto"},
	        {"queue", "", "queue"},
	        {"ssl_mode", "maybe", "verify_identity"},
	        {"table_prefix", "a-b", "table_prefix"},
	        {"table_prefix", "a`b", "table_prefix"},
	        {"table_prefix", "0123456789012345678901234567890123", "32"},
	        {"database", "\xff", "database"},
	};
	bizlock *fresh = NULL;

	cr_assert_eq(bizlock_new(&fresh), BIZLOCK_OK);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int rc = bizlock_set(fresh, bad[i].option, bad[i].value);

		cr_assert_eq(rc, BIZLOCK_INVALID, "%s = %s: %s", bad[i].option, bad[i].value,
		             bizlock_err_name(rc));
		expect_message(fresh, bad[i].word);
	}
	bizlock_close(fresh);
}

/* The message about a misspelt option names the nearest one. That about a bad password does not
 * repeat it. */
Test(input, messages_about_options_help_and_keep_secrets)
{
	bizlock *fresh = NULL;

	cr_assert_eq(bizlock_new(&fresh), BIZLOCK_OK);
	expect(INVALID, fresh, bizlock_set(fresh, "lease_m", "1000"));
	expect_message(fresh, "lease_ms");
	expect(INVALID, fresh, bizlock_set(fresh, "password", "s3cret\xff"));
	expect_message(fresh, "password");
	cr_assert(!strstr(bizlock_errmsg(fresh), "s3cret"));
	bizlock_close(fresh);
}

/* ---- not bad at all ---------------------------------------------------------------- */

TestSuite(good_input, .init = world_begin, .fini = world_end, .timeout = 240);

Test(good_input, structs_of_a_later_version)
{
	bizlock *c = client(NULL);
	struct later_opts opts = {.known = BIZLOCK_ACQUIRE_OPTS_INIT};
	struct later_grant grant = {.known = BIZLOCK_GRANT_INIT};

	opts.known.size = sizeof(opts);
	grant.known.size = sizeof(grant);
	expect(OK, c, bizlock_acquire(c, KEY("k"), &opts.known, &grant.known));
	cr_assert_eq(grant.known.size, sizeof(grant));
	cr_assert_eq(grant.known.depth, 1);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(grant.added[i], 0);
}

Test(good_input, the_limits_themselves)
{
	bizlock *c = client(NULL);

	expect(OK, c, acquire(c, "shortest", .lease_ms = BIZLOCK_LEASE_MIN_MS));
	expect(OK, c,
	       acquire(c, "longest", .wait_ms = INT64_MAX, .lease_ms = BIZLOCK_LEASE_MAX_MS));
	expect(OK, c, bizlock_renew(c, KEY("longest"), NULL, BIZLOCK_LEASE_MAX_MS));
	cr_assert_gt(bizlock_left_ms(c, KEY("longest"), NULL), BIZLOCK_LEASE_MAX_MS - 600000);
}
