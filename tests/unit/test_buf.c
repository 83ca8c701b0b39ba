#include <criterion/criterion.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"

Test(buf, is_null_until_something_is_added)
{
	struct bl_buf b = BL_BUF_INIT(10);

	cr_expect_null(b.data);
	bl_buf_adds(&b, "");
	cr_assert_not_null(b.data);
	cr_expect_str_eq(b.data, "");
	cr_expect_not(b.failed);
	bl_buf_free(&b);
	cr_expect_null(b.data);
}

Test(buf, grows_and_stays_terminated)
{
	struct bl_buf b = BL_BUF_INIT(100000);

	for (size_t i = 0; i < 10000; i++) {
		bl_buf_addf(&b, "%zu", i % 10);
		cr_assert_eq(b.len, i + 1);
		cr_assert_eq(b.data[b.len], '\0');
	}
	for (size_t i = 0; i < 10000; i++)
		cr_assert_eq(b.data[i], (char)('0' + i % 10));
	bl_buf_free(&b);
}

Test(buf, mixes_text_bytes_numbers_and_hex)
{
	struct bl_buf b = BL_BUF_INIT(100);

	bl_buf_adds(&b, "key=");
	bl_buf_add(&b, "a\0b", 3);
	bl_buf_addf(&b, " %d%%", -7);
	bl_buf_add_hex(&b, "\x00\x7f\xff\xa0", 4);
	bl_buf_add(&b, NULL, 0);
	cr_expect_eq(b.len, 19);
	cr_expect_eq(memcmp(b.data, "key=a\0b -7%007fffa0", 20), 0);
	bl_buf_free(&b);
}

Test(buf, writes_numbers)
{
	struct bl_buf b = BL_BUF_INIT(100);

	bl_buf_addu(&b, 0);
	bl_buf_adds(&b, " ");
	bl_buf_addu(&b, 10);
	bl_buf_adds(&b, " ");
	bl_buf_addu(&b, UINT64_MAX);
	cr_assert_str_eq(b.data, "0 10 18446744073709551615");
	bl_buf_free(&b);
}

Test(buf, the_cap_is_exact)
{
	struct bl_buf b = BL_BUF_INIT(8);

	bl_buf_adds(&b, "12345678");
	cr_expect_not(b.failed);
	bl_buf_adds(&b, "");
	cr_expect_not(b.failed);
	bl_buf_adds(&b, "9");
	cr_expect(b.failed);
	cr_expect_str_eq(b.data, "12345678");
	bl_buf_free(&b);
}

static void add_text(struct bl_buf *b)
{
	bl_buf_adds(b, "abcdef");
}

static void add_formatted(struct bl_buf *b)
{
	bl_buf_addf(b, "%s", "abcdef");
}

static void add_hexadecimal(struct bl_buf *b)
{
	bl_buf_add_hex(b, "abc", 3);
}

static void add_absurd_length(struct bl_buf *b)
{
	bl_buf_add(b, "a", SIZE_MAX);
}

static void add_absurd_hex(struct bl_buf *b)
{
	bl_buf_add_hex(b, "a", SIZE_MAX / 2 + 2); /* twice that is 2 */
}

/* Every way of adding: a text that does not fit changes nothing, and the failure stays, even for
 * texts that would fit. */
Test(buf, failure_sticks_and_changes_nothing)
{
	static void (*const adds[])(struct bl_buf *) = {add_text, add_formatted, add_hexadecimal,
	                                                add_absurd_length, add_absurd_hex};

	for (size_t i = 0; i < sizeof(adds) / sizeof(*adds); i++) {
		struct bl_buf b = BL_BUF_INIT(8);

		bl_buf_adds(&b, "123");
		adds[i](&b);
		cr_expect(b.failed, "way %zu", i);
		bl_buf_adds(&b, "4");
		bl_buf_addf(&b, "%d", 5);
		cr_expect_str_eq(b.data, "123", "way %zu", i);
		cr_expect_eq(b.len, 3);
		bl_buf_free(&b);
		cr_expect_not(b.failed);
	}
}

Test(buf, reset_empties_and_forgives)
{
	struct bl_buf b = BL_BUF_INIT(4);

	bl_buf_reset(&b);
	cr_expect_null(b.data);
	bl_buf_adds(&b, "12345");
	cr_expect(b.failed);
	bl_buf_reset(&b);
	bl_buf_adds(&b, "1234");
	cr_expect_not(b.failed);
	cr_expect_str_eq(b.data, "1234");
	bl_buf_reset(&b);
	cr_expect_str_eq(b.data, "");
	cr_expect_eq(b.len, 0);
	bl_buf_free(&b);
}
