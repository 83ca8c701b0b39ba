/* Makes text of strangers safe to show: escapes, JSON strings, labels of metrics, width on a
 * terminal. */
#include <langinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "cli/cli.h"

#define REPLACEMENT 0xfffd /* stands for broken UTF-8 */

/* The code point at `at`, and its length; 0: not UTF-8. */
static size_t decode(const unsigned char *at, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t len = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : 4;
	uint32_t point = len == 1 ? *at : *at & (0x7fu >> len);

	if (len == 0 || *at > 0xf4)
		return 0;
	for (size_t i = 1; i < len; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (at[i] & 0x3fu);
	}
	*ret = point;
	if (point < least[len] || point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
		return 0;
	return len;
}

static bool harmless(uint32_t point)
{
	if (point < 0x20 || (point >= 0x7f && point < 0xa0))
		return false;
	/* line and paragraph separators, and marks that change the direction of writing */
	return !(point >= 0x2028 && point <= 0x202e) && !(point >= 0x2066 && point <= 0x2069) &&
	       point != 0x200e && point != 0x200f && point != 0x061c;
}

/* In other locales a byte of a UTF-8 character may be a control code for the terminal, and
 * libsmartcols loops for ever when it measures a byte that is no character. */
static bool locale_is_utf8(void)
{
	return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

char *cli_safe(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	bool utf8 = locale_is_utf8();
	char *ret = malloc(4 * strlen(text) + 1), *to = ret;
	uint32_t point = 0;

	while (ret && *at) {
		size_t len = decode(at, &point);

		if ((len == 1 || (len > 1 && utf8)) && harmless(point)) {
			memcpy(to, at, len);
			to += len;
			at += len;
			continue;
		}
		for (len = len ? len : 1; len > 0; len--, at++, to += 4)
			snprintf(to, 5, "\\x%02x", *at);
	}
	if (ret)
		*to = '\0';
	return ret;
}

/* ---- JSON --------------------------------------------------------------------------- */

#define ESCAPE_SIZE 6 /* of \uNNNN: no harmful character needs more than four digits */

/* Returns the number of bytes written. */
static size_t quote(char *to, const unsigned char *at, size_t len, uint32_t point)
{
	char escape[ESCAPE_SIZE + 1];

	if (len == 1 && (point == '"' || point == '\\')) {
		to[0] = '\\';
		to[1] = (char)point;
		return 2;
	}
	if (len > 0 && harmless(point)) {
		memcpy(to, at, len);
		return len;
	}
	snprintf(escape, sizeof(escape), "\\u%04x", (len ? point : REPLACEMENT) & 0xffffu);
	memcpy(to, escape, ESCAPE_SIZE);
	return ESCAPE_SIZE;
}

char *cli_json_string(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	char *ret = malloc(ESCAPE_SIZE * strlen(text) + sizeof("\"\"")), *to = ret;

	if (!ret)
		return NULL;
	*to++ = '"';
	while (*at) {
		uint32_t point = 0;
		size_t len = decode(at, &point);

		to += quote(to, at, len, point);
		at += len ? len : 1;
	}
	*to++ = '"';
	*to = '\0';
	return ret;
}

/* ---- labels of metrics --------------------------------------------------------------------- */

#define LABEL_ESCAPE_SIZE 5 /* of \\xNN */

char *cli_label_value(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;
	char *ret = malloc(LABEL_ESCAPE_SIZE * strlen(text) + 1), *to = ret;

	while (ret && *at) {
		uint32_t point = 0;
		size_t len = decode(at, &point);

		if (len == 1 && (point == '"' || point == '\\'))
			*to++ = '\\';
		if (len > 0 && harmless(point)) {
			memcpy(to, at, len);
			to += len;
			at += len;
			continue;
		}
		for (len = len ? len : 1; len > 0; len--, at++, to += LABEL_ESCAPE_SIZE)
			snprintf(to, LABEL_ESCAPE_SIZE + 1, "\\\\x%02x", *at);
	}
	if (ret)
		*to = '\0';
	return ret;
}

/* ---- width ----------------------------------------------------------------------------- */

size_t cli_fit(const char *text, size_t len, unsigned columns)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t ret = 0;

	while (ret < len) {
		uint32_t point = 0;
		size_t bytes = decode(at + ret, &point);
		int width = bytes ? wcwidth((wchar_t)point) : -1;
		unsigned needs = width < 0 ? 2 : (unsigned)width; /* unknown: too wide is safer */

		if (bytes == 0 || bytes > len - ret || needs > columns)
			break;
		columns -= needs;
		ret += bytes;
	}
	return ret;
}
