/* The text by which a lock is handed over: what one may do with it, and what not. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_numbers.h"
#include "cr_test.h"

TestSuite(handover_text, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 600000

static bizlock *exporter(char text[BIZLOCK_EXPORT_MAX])
{
	bizlock *a = client(NULL);

	expect(OK, a, acquire_as(a, "k", "giver"));
	expect(OK, a, bizlock_export(a, KEY("k"), "giver", text, BIZLOCK_EXPORT_MAX));
	return a;
}

/* ---- its looks ------------------------------------------------------------------- */

static const char *const awkward[] = {
        "k",
        "'; DROP TABLE biz_lock; --",
        "\"double\" and `back`",
        "back\\slash\\",
        "100%s of %d _ %",
        "\xf0\x9f\x94\x92 \xe2\x82\xac \xc3\xa9",
        "\x01\x1f\x7f tab\t new\nline",
        " x' 0x41 NULL ",
        "1:2.3@4/5,6;7|8-9_+=",
        "a ",
};

#define AWKWARD (sizeof(awkward) / sizeof(awkward[0]))

static void expect_plain(const char *text)
{
	size_t length = strlen(text);

	cr_assert(length > 0 && length < BIZLOCK_EXPORT_MAX, "%zu bytes", length);
	for (size_t i = 0; i < length; i++)
		cr_assert(text[i] > ' ' && text[i] < 0x7f, "byte 0x%02x in %s",
		          (unsigned char)text[i], text);
}

static void goes_over(bizlock *a, bizlock *b, bizlock_key key, const char *owner)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant given = BIZLOCK_GRANT_INIT, got = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX], type[BIZLOCK_TYPE_MAX + 1], id[BIZLOCK_ID_MAX + 1];

	opts.owner = owner;
	opts.note = key.biz_id;
	opts.lease_ms = LEASE_MS;
	expect(OK, a, bizlock_acquire(a, key, &opts, &given));
	memset(text, '\xff', sizeof(text));
	expect(OK, a, bizlock_export(a, key, owner, text, sizeof(text)));
	expect_plain(text);
	expect(OK, b, bizlock_exported_key(b, text, type, id));
	cr_assert_str_eq(type, key.biz_type);
	cr_assert_str_eq(id, key.biz_id);
	expect(OK, b, bizlock_import(b, text, owner, &got));
	cr_assert_eq(got.fence, given.fence);
	cr_assert_eq(got.lease_ms, given.lease_ms);
	expect(OK, b, bizlock_verify(b, key, owner));
	cr_assert_str_eq(row_of(&world, key).owner[0] ? "owned" : "", "owned");
	expect(OK, b, bizlock_release(b, key, owner, NULL));
	cr_assert(no_row(&world, key));
}

Test(handover_text, any_key_fits_and_it_is_printable_ascii)
{
	bizlock *a = client(NULL), *b = client(NULL);

	for (size_t i = 0; i < AWKWARD; i++)
		goes_over(a, b, (bizlock_key){awkward[i], awkward[AWKWARD - 1 - i]}, NULL);
}

Test(handover_text, the_longest_of_all_fits)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char type[BIZLOCK_TYPE_MAX + 1] = "", id[BIZLOCK_ID_MAX + 1] = "",
	                             owner[BIZLOCK_OWNER_NAME_MAX + 1] = "";

	memset(type, '%', BIZLOCK_TYPE_MAX);
	memset(owner, '%', BIZLOCK_OWNER_NAME_MAX);
	for (size_t i = 0; i < BIZLOCK_ID_MAX / 4; i++)
		memcpy(id + 4 * i, "\xf0\x9f\x94\x92", 4);
	goes_over(a, b, (bizlock_key){type, id}, owner);
}

Test(handover_text, a_short_key_has_a_short_one)
{
	char text[BIZLOCK_EXPORT_MAX];

	exporter(text);
	cr_assert_lt(strlen(text), 256, "%s", text);
}

/* The text alone says of which lock it is, before a server is asked, and after. */
Test(handover_text, its_key_can_be_read)
{
	char text[BIZLOCK_EXPORT_MAX], type[BIZLOCK_TYPE_MAX + 1] = "-",
	                                                       id[BIZLOCK_ID_MAX + 1] = "-";
	bizlock *b = client(NULL), *fresh;

	exporter(text);
	cr_assert(bizlock_new(&fresh) == BIZLOCK_OK);
	expect(INVALID, fresh, bizlock_exported_key(fresh, "bizlock1:", type, id));
	expect(INVALID, fresh, bizlock_exported_key(fresh, NULL, type, id));
	expect(INVALID, fresh, bizlock_exported_key(fresh, text, NULL, id));
	expect(INVALID, fresh, bizlock_exported_key(fresh, text, type, NULL));
	cr_assert_str_eq(type, "-");
	cr_assert_str_eq(id, "-");
	expect(OK, fresh, bizlock_exported_key(fresh, text, type, id));
	cr_assert_str_eq(id, "k");
	bizlock_close(fresh);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	expect(OK, b, bizlock_exported_key(b, text, type, id));
	expect(OK, b, bizlock_release(b, (bizlock_key){type, id}, NULL, NULL));
	cr_assert(no_row(&world, KEY("k")));
}

/* ---- a buffer that is too small --------------------------------------------------- */

Test(handover_text, what_does_not_fit_is_still_held)
{
	bizlock *a = client(NULL), *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char text[BIZLOCK_EXPORT_MAX];
	size_t size = 1;
	int rc;

	expect(OK, a, bizlock_acquire(a, KEY("k"), NULL, &grant));
	for (; (rc = bizlock_export(a, KEY("k"), NULL, text, size)) == BIZLOCK_LIMIT; size++) {
		cr_assert(bizlock_errmsg(a)[0]);
		cr_assert_lt(size, sizeof(text));
		cr_assert_gt(bizlock_left_ms(a, KEY("k"), NULL), 0);
		if (size % 16 == 1)
			expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	}
	expect(OK, a, rc);
	cr_assert_gt(size, 8, "%zu bytes are too few", size);
	cr_assert_eq(strlen(text) + 1, size);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	cr_assert_eq(row_of(&world, KEY("k")).fence, grant.fence);
}

/* ---- used twice, or too late --------------------------------------------------------- */

Test(handover_text, it_is_good_for_one_import)
{
	char text[BIZLOCK_EXPORT_MAX];
	bizlock *a = exporter(text), *b = client(NULL), *c = client(NULL);
	const char *before;

	expect(OK, b, bizlock_import(b, text, "getter", NULL));
	before = row_text("k");
	expect(LOST, c, bizlock_import(c, text, NULL, NULL));
	expect_message(c, "k");
	expect(LOST, a, bizlock_import(a, text, "giver", NULL));
	expect(LOST, b, bizlock_import(b, text, "another", NULL));
	cr_assert_str_eq(row_text("k"), before);
	expect(OK, b, bizlock_verify(b, KEY("k"), "getter"));
	expect(OK, b, bizlock_release(b, KEY("k"), "getter", NULL));
	expect(LOST, c, bizlock_import(c, text, NULL, NULL));
	cr_assert(no_row(&world, KEY("k")));
}

struct racer {
	bizlock *b;
	const char *text;
	int rc;
	pthread_t thread;
};

static void *race(void *arg)
{
	struct racer *r = arg;

	r->rc = bizlock_import(r->b, r->text, "racer", NULL);
	return NULL;
}

Test(handover_text, of_many_imports_at_once_one_succeeds)
{
	enum { RACERS = 6 };
	struct racer racers[RACERS];
	char text[BIZLOCK_EXPORT_MAX];
	bizlock *a = client(NULL);

	for (int i = 0; i < RACERS; i++)
		racers[i] = (struct racer){.b = client(NULL), .text = text};
	for (int round = 0; round < 20; round++) {
		int winner = -1;

		expect(OK, a, acquire_as(a, "k", "giver", .wait_ms = PATIENCE_MS));
		expect(OK, a, bizlock_export(a, KEY("k"), "giver", text, sizeof(text)));
		for (int i = 0; i < RACERS; i++)
			if (pthread_create(&racers[i].thread, NULL, race, &racers[i]) != 0)
				die("no thread");
		for (int i = 0; i < RACERS; i++) {
			pthread_join(racers[i].thread, NULL);
			cr_assert(racers[i].rc == BIZLOCK_LOST ||
			                  (racers[i].rc == BIZLOCK_OK && winner < 0),
			          "%d: %s", i, bizlock_err_name(racers[i].rc));
			winner = racers[i].rc == BIZLOCK_OK ? i : winner;
		}
		cr_assert_geq(winner, 0, "nobody got it");
		a = racers[winner].b;
		expect(OK, a, bizlock_release(a, KEY("k"), "racer", NULL));
	}
}

Test(handover_text, what_was_broken_meanwhile_is_lost)
{
	char text[BIZLOCK_EXPORT_MAX];
	bizlock *a = exporter(text), *b = client(NULL);
	const char *before;

	expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
	expect(LOST, b, bizlock_import(b, text, NULL, NULL));
	cr_assert(!row_of(&world, KEY("k")).there);
	expect(OK, a, acquire_as(a, "k", "next", .wait_ms = 5000));
	before = row_text("k");
	expect(LOST, b, bizlock_import(b, text, NULL, NULL));
	cr_assert_str_eq(row_text("k"), before);
}

Test(handover_text, a_holder_of_the_key_is_refused)
{
	char text[BIZLOCK_EXPORT_MAX];
	bizlock *b, *c = client(NULL);
	const char *before;

	exporter(text);
	b = client(NULL);
	expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
	expect(OK, b, acquire_as(b, "k", "getter", .wait_ms = 5000));
	before = row_text("k");
	expect(MISUSE, b, bizlock_import(b, text, "getter", NULL));
	cr_assert(bizlock_errmsg(b)[0]);
	cr_assert_str_eq(row_text("k"), before);
	expect(OK, b, bizlock_verify(b, KEY("k"), "getter"));
	expect(LOST, c, bizlock_import(c, text, "getter", NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), "getter", NULL));
}

/* ---- not such a text ----------------------------------------------------------------- */

static void expect_refused(bizlock *b, const char *text)
{
	bizlock_grant grant = {sizeof(grant), 11, 22, 33, 44, 0};
	int rc = bizlock_import(b, text, "getter", &grant);

	cr_assert(rc == BIZLOCK_INVALID || rc == BIZLOCK_LOST, "%s: %s", bizlock_err_name(rc),
	          text);
	cr_assert(bizlock_errmsg(b)[0]);
	cr_assert(grant.fence == 11 && grant.depth == 22 && grant.lease_ms == 33 &&
	          grant.flags == 44);
}

Test(handover_text, garbage_is_invalid)
{
	static const char *const garbage[] = {
	        "",      " ",           "k",
	        "hello", "bizlock",     "bizlock1:",
	        "0",     "::::::::",    "1.2.3.4.5.6.7.8",
	        "%",     "%zz%",        "\xff\xfe",
	        "\n",    "' OR 1=1 --", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==",
	};
	bizlock *b = client(NULL);
	char large[4096];

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		expect(INVALID, b, bizlock_import(b, garbage[i], NULL, NULL));
	memset(large, 'a', sizeof(large));
	large[sizeof(large) - 1] = '\0';
	expect(INVALID, b, bizlock_import(b, large, NULL, NULL));
	expect(INVALID, b, bizlock_import(b, NULL, NULL, NULL));
	cr_assert_eq(numbers_of(b).held, 0);
}

Test(handover_text, a_part_of_it_is_worth_nothing)
{
	char text[BIZLOCK_EXPORT_MAX], part[BIZLOCK_EXPORT_MAX + 8];
	bizlock *b;
	const char *before;
	size_t length;

	exporter(text);
	b = client(NULL);
	before = row_text("k");
	length = strlen(text);
	for (size_t n = 0; n < length; n++) {
		snprintf(part, sizeof(part), "%.*s", (int)n, text);
		expect_refused(b, part);
		if (n > 0)
			expect_refused(b, text + n);
	}
	for (size_t n = 0; n < length; n++) { /* one byte is missing, or comes twice */
		snprintf(part, sizeof(part), "%.*s%s", (int)n, text, text + n + 1);
		if (strcmp(part, text) != 0)
			expect_refused(b, part);
		snprintf(part, sizeof(part), "%.*s%s", (int)n + 1, text, text + n);
		expect_refused(b, part);
	}
	cr_assert_str_eq(row_text("k"), before);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
}

Test(handover_text, altered_it_is_worth_nothing)
{
	static const char others[] = "0123456789abcdefABCDEFxyzXYZ.:@%-_/ ~\n\x80";
	char text[BIZLOCK_EXPORT_MAX], altered[BIZLOCK_EXPORT_MAX + 8];
	bizlock *b;
	const char *before;

	exporter(text);
	b = client(NULL);
	before = row_text("k");
	for (size_t at = 0; text[at]; at++)
		for (size_t i = 0; others[i]; i++) {
			snprintf(altered, sizeof(altered), "%s", text);
			altered[at] = others[i];
			if (others[i] != text[at])
				expect_refused(b, altered);
		}
	snprintf(altered, sizeof(altered), "%s\n", text);
	expect_refused(b, altered);
	snprintf(altered, sizeof(altered), " %s", text);
	expect_refused(b, altered);
	snprintf(altered, sizeof(altered), "%s%s", text, "0");
	expect_refused(b, altered);
	cr_assert_str_eq(row_text("k"), before);
	cr_assert_eq(numbers_of(b).held, 0);
	expect(OK, b, bizlock_import(b, text, NULL, NULL));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

Test(handover_text, arguments_are_checked)
{
	bizlock *a = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];
	bizlock_grant grant = {0, 0, 0, 0, 0, 0};

	expect(OK, a, bizlock_acquire(a, KEY("k"), NULL, NULL));
	expect(INVALID, a, bizlock_export(a, KEY("k"), NULL, NULL, sizeof(text)));
	expect(INVALID, a, bizlock_export(a, KEY(""), NULL, text, sizeof(text)));
	expect(INVALID, a, bizlock_export(a, KEY("k"), "with space", text, sizeof(text)));
	expect(NOT_OWNER, a, bizlock_export(a, KEY("other"), NULL, text, sizeof(text)));
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
	expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
	expect(INVALID, a, bizlock_import(a, text, "with space", NULL));
	expect(INVALID, a, bizlock_import(a, text, NULL, &grant));
	expect(OK, a, bizlock_import(a, text, NULL, NULL));
	cr_assert_eq(bizlock_export(NULL, KEY("k"), NULL, text, sizeof(text)), BIZLOCK_INVALID);
	cr_assert_eq(bizlock_import(NULL, text, NULL, NULL), BIZLOCK_INVALID);
}

Test(handover_text, what_is_lost_cannot_be_exported)
{
	bizlock *a = client(NULL), *b = client(NULL);
	char text[BIZLOCK_EXPORT_MAX];
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, a, bizlock_acquire(a, KEY("broken"), NULL, &grant));
	expect(OK, b, bizlock_break(b, KEY("broken"), grant.fence));
	expect(LOST, a, bizlock_export(a, KEY("broken"), NULL, text, sizeof(text)));
	expect(LOST, a, bizlock_release(a, KEY("broken"), NULL, NULL));
	expect(OK, a, acquire(a, "over", .lease_ms = 150, .wait_ms = -1));
	lease_is_over("over");
	expect(LOST, a, bizlock_export(a, KEY("over"), NULL, text, sizeof(text)));
	expect(LOST, a, bizlock_release(a, KEY("over"), NULL, NULL));
}
