#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Removes a last character that is cut in two: half a character would make the whole
 * message invalid UTF-8 in a log. */
static void drop_half_character(char *msg)
{
	size_t len = strlen(msg), tail = 0, whole = 0;
	unsigned char lead;

	while (tail < len && tail < 3 && ((unsigned char)msg[len - 1 - tail] & 0xc0) == 0x80)
		tail++;
	if (tail == len)
		return;
	lead = (unsigned char)msg[len - 1 - tail];
	if (lead >= 0xc0)
		whole = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
	if (whole > tail)
		msg[len - 1 - tail] = '\0';
}

/* U+0000 to U+001F, U+007F to U+009F. */
static bool is_control(const char *c)
{
	unsigned char first = (unsigned char)c[0], second = (unsigned char)c[1];

	return first < ' ' || first == 0x7f || (first == 0xc2 && second < 0xa0);
}

/* Makes the output of vsnprintf() safe to show; len: what vsnprintf() returned. A line feed or an
 * escape sequence in a key, an owner, a path or the server's words must not forge a line in a log;
 * and a reader of JSON would refuse a whole line for one byte that is no character. */
static void settle(char *text, size_t size, int len)
{
	size_t left, step;

	if (len < 0)
		text[0] = '\0';
	else if ((size_t)len >= size)
		drop_half_character(text);
	left = strlen(text);
	for (char *c = text; left > 0; c += step, left -= step) {
		step = bl_utf8_character(c, left);
		if (step == 0 || is_control(c)) {
			*c = '?';
			step = 1;
		}
	}
}

void bl_err_format(char *ret, size_t size, const char *fmt, va_list args)
{
	settle(ret, size, vsnprintf(ret, size, fmt, args));
}

int bl_err_set(struct bl_err *e, int code, const char *fmt, ...)
{
	char msg[sizeof(e->msg)]; /* the old message may be among the arguments */
	va_list args;

	va_start(args, fmt);
	bl_err_format(msg, sizeof(msg), fmt, args);
	va_end(args);
	e->code = code;
	e->native = e->refused = 0;
	memcpy(e->msg, msg, strlen(msg) + 1);
	return code;
}

int bl_err_wrap(struct bl_err *e, const char *fmt, ...)
{
	char prefix[sizeof(e->msg)], whole[sizeof(e->msg)];
	va_list args;
	int len;

	va_start(args, fmt);
	bl_err_format(prefix, sizeof(prefix), fmt, args);
	va_end(args);
	len = snprintf(whole, sizeof(whole), "%s%s%s", prefix, e->msg[0] ? ": " : "", e->msg);
	settle(whole, sizeof(whole), len);
	memcpy(e->msg, whole, strlen(whole) + 1);
	return e->code;
}
