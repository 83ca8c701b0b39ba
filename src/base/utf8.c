#include "base/utf8.h"

/* The range of the second byte rules out overlong forms, surrogates, and U+110000 and up. */
size_t bl_utf8_character(const char *text, size_t left)
{
	const unsigned char *s = (const unsigned char *)text;
	unsigned char lead = s[0], low = 0x80, high = 0xbf;
	size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (len == 1)
		return 1;
	if (lead < 0xc2 || lead > 0xf4 || len > left)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool bl_utf8_valid(const char *s, size_t len)
{
	size_t step;

	for (; len > 0; s += step, len -= step) {
		step = bl_utf8_character(s, len);
		if (step == 0)
			return false;
	}
	return true;
}
