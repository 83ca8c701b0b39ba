#include <criterion/criterion.h>
#include <stdint.h>

#include "base/utf8.h"

#define S(text) text, sizeof(text) - 1

Test(utf8, table)
{
	static const struct {
		const char *text;
		size_t len;
		bool valid;
		const char *why;
	} rows[] = {
	        {S(""), true, "nothing"},
	        {S("plain"), true, "ASCII"},
	        {S("\0"), true, "U+0000"},
	        {S("\x7f"), true, "U+007F"},
	        {S("\xc2\x80"), true, "U+0080"},
	        {S("\xdf\xbf"), true, "U+07FF"},
	        {S("\xe0\xa0\x80"), true, "U+0800"},
	        {S("\xed\x9f\xbf"), true, "U+D7FF"},
	        {S("\xee\x80\x80"), true, "U+E000"},
	        {S("\xef\xbf\xbf"), true, "U+FFFF"},
	        {S("\xf0\x90\x80\x80"), true, "U+10000"},
	        {S("\xf4\x8f\xbf\xbf"), true, "U+10FFFF"},
	        {S("\xc0\x80"), false, "overlong U+0000"},
	        {S("\xc1\xbf"), false, "overlong U+007F"},
	        {S("\xe0\x9f\xbf"), false, "overlong U+07FF"},
	        {S("\xf0\x8f\xbf\xbf"), false, "overlong U+FFFF"},
	        {S("\xed\xa0\x80"), false, "surrogate U+D800"},
	        {S("\xed\xbf\xbf"), false, "surrogate U+DFFF"},
	        {S("\xf4\x90\x80\x80"), false, "U+110000"},
	        {S("\xf5\x80\x80\x80"), false, "lead byte F5"},
	        {S("\xf8\x88\x80\x80\x80"), false, "five bytes"},
	        {S("\xff"), false, "FF"},
	        {S("\x80"), false, "a tail alone"},
	        {S("a\xbf"), false, "a tail behind ASCII"},
	        {S("\xc3"), false, "cut off, one of two"},
	        {S("\xe2\x82"), false, "cut off, two of three"},
	        {S("\xf0\x9f\x94"), false, "cut off, three of four"},
	        {S("\xc3("), false, "second byte no tail"},
	        {S("\xe2\x28\xac"), false, "second of three no tail"},
	        {S("\xe2\x82("), false, "third byte no tail"},
	        {S("\xf0\x9f\x94("), false, "fourth byte no tail"},
	        {S("\xf0\x9f\xc2\x80"), false, "third of four no tail"},
	        {S("ok \xf0\x9f\x94\x92\xc3\xa1 \xff"), false, "bad at the end"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		cr_expect_eq(bl_utf8_valid(rows[i].text, rows[i].len), rows[i].valid, "%s",
		             rows[i].why);
}

static size_t encode(uint32_t c, char ret[4])
{
	if (c < 0x80)
		ret[0] = (char)c;
	else if (c < 0x800)
		ret[0] = (char)(0xc0 | c >> 6);
	else if (c < 0x10000)
		ret[0] = (char)(0xe0 | c >> 12);
	else
		ret[0] = (char)(0xf0 | c >> 18);
	size_t len = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	for (size_t i = 1; i < len; i++)
		ret[i] = (char)(0x80 | (c >> (6 * (len - 1 - i)) & 0x3f));
	return len;
}

Test(utf8, every_code_point_and_no_surrogate)
{
	for (uint32_t c = 0; c < 0x140000; c++) {
		char text[4];
		size_t len = encode(c, text);
		bool valid = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);

		cr_assert_eq(bl_utf8_valid(text, len), valid, "U+%04X", (unsigned)c);
		cr_assert_not(len > 1 && bl_utf8_valid(text, len - 1), "U+%04X cut", (unsigned)c);
	}
}
