#include <criterion/criterion.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"

/* Two errors with one number do not compile, because a switch has each case once. */
static const char *name_of(int number)
{
	switch (number) {
#define CASE(name, value, text)                                                                    \
	case value:                                                                                \
		return #name;
		BIZLOCK_ERRORS(CASE)
#undef CASE
	default:
		return NULL;
	}
}

Test(err, numbers_are_the_documented_ones)
{
	static const char *const names[] = {
	        "OK",      "BUSY",  "TIMEOUT",     "CANCELLED", "LOST",    "NOT_OWNER",
	        "UNKNOWN", "CONN",  "DB",          "SCHEMA",    "INVALID", "MISUSE",
	        "LIMIT",   "NOMEM", "UNSUPPORTED", "STALE",
	};
	size_t n = sizeof(names) / sizeof(*names);

	for (size_t i = 0; i < n; i++)
		cr_expect_str_eq(name_of((int)i), names[i]);
	cr_expect_null(name_of((int)n), "a new error needs a line here");
}

Test(err, set_replaces_everything)
{
	struct bl_err e = {BIZLOCK_DB, 1213, "old words that are longer than the new ones", 0};

	cr_expect_eq(bl_err_set(&e, BIZLOCK_BUSY, "held by %s, %d ms left", "me", 7), BIZLOCK_BUSY);
	cr_expect_eq(e.code, BIZLOCK_BUSY);
	cr_expect_eq(e.native, 0);
	cr_expect_str_eq(e.msg, "held by me, 7 ms left");
}

Test(err, set_takes_the_old_message_as_argument)
{
	struct bl_err e;

	bl_err_set(&e, BIZLOCK_DB, "first");
	bl_err_set(&e, BIZLOCK_CONN, "%s, then %s", e.msg, e.msg);
	cr_expect_str_eq(e.msg, "first, then first");
}

Test(err, wrap_adds_prefixes_and_keeps_the_code)
{
	struct bl_err e;

	bl_err_set(&e, BIZLOCK_DB, "Deadlock found");
	e.native = 1213;
	cr_expect_eq(bl_err_wrap(&e, "execute"), BIZLOCK_DB);
	cr_expect_eq(bl_err_wrap(&e, "acquire %s/%d", "order", 4711), BIZLOCK_DB);
	cr_expect_str_eq(e.msg, "acquire order/4711: execute: Deadlock found");
	cr_expect_eq(e.native, 1213);
}

Test(err, wrap_without_message_adds_no_colon)
{
	struct bl_err e;

	bl_err_clear(&e);
	bl_err_wrap(&e, "open");
	cr_expect_str_eq(e.msg, "open");
	bl_err_wrap(&e, "%s again", e.msg);
	cr_expect_str_eq(e.msg, "open again: open");
}

Test(err, clear_leaves_nothing)
{
	struct bl_err e = {BIZLOCK_DB, 1213, "words", 0};

	bl_err_clear(&e);
	cr_expect_eq(e.code, BIZLOCK_OK);
	cr_expect_eq(e.native, 0);
	cr_expect_str_eq(e.msg, "");
}

static void expect_cut(const char *msg, const char *character, size_t ascii)
{
	size_t len = strlen(msg), width = strlen(character);

	cr_expect(bl_utf8_valid(msg, len), "%zu bytes, then %zu-byte characters", ascii, width);
	cr_expect_gt(len + width, sizeof(((struct bl_err *)0)->msg) - 1,
	             "cut off more than one character: %zu bytes left", len);
}

/* Each width of character at each offset to the end of the buffer. */
Test(err, long_messages_are_cut_between_characters)
{
	static const char *const characters[] = {"x", "\xc3\xa1", "\xe2\x82\xac",
	                                         "\xf0\x9f\x94\x92"};
	char text[700];
	struct bl_err e;

	for (size_t i = 0; i < 4; i++) {
		for (size_t ascii = 0; ascii < 8; ascii++) {
			size_t width = strlen(characters[i]), len = ascii;

			memset(text, 'a', ascii);
			for (; len < 600; len += width)
				memcpy(text + len, characters[i], width);
			text[len] = '\0';
			bl_err_set(&e, BIZLOCK_DB, "%s", text);
			expect_cut(e.msg, characters[i], ascii);
			bl_err_wrap(&e, "p");
			cr_expect_eq(memcmp(e.msg, "p: ", 3), 0);
			expect_cut(e.msg, characters[i], ascii + 3);
			bl_err_wrap(&e, "%s", text);
			expect_cut(e.msg, characters[i], ascii);
		}
	}
}

Test(err, control_characters_do_not_get_through)
{
	struct bl_err e;

	bl_err_set(&e, BIZLOCK_BUSY, "a%sb", "\n\x1b[2J\x7f\xc3\xa1");
	cr_expect_str_eq(e.msg, "a??[2J?\xc3\xa1"
	                        "b");
	bl_err_wrap(&e, "%s", "order/\r1");
	cr_expect_str_eq(e.msg, "order/?1: a??[2J?\xc3\xa1"
	                        "b");
}

Test(err, exactly_511_bytes_fit)
{
	char text[513];
	struct bl_err e;

	memset(text, 'a', 512);
	text[512] = '\0';
	bl_err_set(&e, BIZLOCK_DB, "%s", text);
	cr_expect_eq(strlen(e.msg), 511);
	memcpy(text + 508, "\xe2\x82\xac", 4); /* ends at byte 511 */
	bl_err_set(&e, BIZLOCK_DB, "%s", text);
	cr_expect_str_eq(e.msg, text);
}

/* Seen by a terminal as ESC and a letter. */
Test(err, control_characters_of_two_bytes_neither)
{
	struct bl_err e;

	bl_err_set(&e, BIZLOCK_BUSY, "a%sb", "\xc2\x80\xc2\x9b\xc2\x9f\xc2\xa0");
	cr_expect_str_eq(e.msg, "a??????\xc2\xa0"
	                        "b");
}

/* A path need not be UTF-8, and a text may have been cut at any byte. */
Test(err, what_is_no_character_does_not_get_through)
{
	struct bl_err e;

	bl_err_set(&e, BIZLOCK_INVALID, "%.4s|%s", "\xe2\x82\xac\xe2\x82\xac", "\xed\xa0\x80\xff.");
	cr_expect_str_eq(e.msg, "\xe2\x82\xac?|????.");
	bl_err_wrap(&e, "%s", "caf\xe9");
	cr_expect_str_eq(e.msg, "caf?: \xe2\x82\xac?|????.");
}

/* A server's words need not be UTF-8. They must neither be lost nor read past their end. */
Test(err, stray_tail_bytes_do_no_harm)
{
	char text[601];
	struct bl_err e;

	memset(text, '\x80', 600);
	text[600] = '\0';
	bl_err_set(&e, BIZLOCK_DB, "%s", text);
	cr_expect_eq(strlen(e.msg), 511);
}
