#include "base/buf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SIZE 64

/* Makes room for `more` bytes and a NUL. */
static bool reserve(struct bl_buf *b, size_t more)
{
	size_t size = b->size ? b->size : FIRST_SIZE, need;
	char *data;

	if (b->failed || b->len > b->cap || more > b->cap - b->len || b->cap > SIZE_MAX / 4)
		goto fail;
	need = b->len + more + 1;
	if (need <= b->size)
		return true;
	while (size < need)
		size *= 2;
	data = realloc(b->data, size);
	if (!data)
		goto fail;
	b->data = data;
	b->size = size;
	return true;
fail:
	b->failed = true;
	return false;
}

void bl_buf_add(struct bl_buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len > 0)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void bl_buf_adds(struct bl_buf *b, const char *text)
{
	bl_buf_add(b, text, strlen(text));
}

/* Formats into the room that is left first: most often one vsnprintf() is enough. */
void bl_buf_addv(struct bl_buf *b, const char *fmt, va_list args)
{
	size_t room = b->size - b->len;
	char *end = room > 0 ? b->data + b->len : NULL;
	va_list again;
	int len;

	va_copy(again, args);
	len = vsnprintf(end, room, fmt, args);
	if (len < 0)
		b->failed = true;
	if (len >= 0 && reserve(b, (size_t)len)) {
		if ((size_t)len >= room)
			vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
		b->len += (size_t)len;
	} else if (end) {
		*end = '\0';
	}
	va_end(again);
}

void bl_buf_addf(struct bl_buf *b, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	bl_buf_addv(b, fmt, args);
	va_end(args);
}

void bl_buf_addu(struct bl_buf *b, uint64_t number)
{
	char digits[20];
	size_t n = 0;

	do
		digits[sizeof(digits) - ++n] = (char)('0' + number % 10);
	while ((number /= 10) != 0);
	bl_buf_add(b, digits + sizeof(digits) - n, n);
}

void bl_buf_add_hex(struct bl_buf *b, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *byte = data;

	if (!reserve(b, len > SIZE_MAX / 2 ? SIZE_MAX : 2 * len))
		return;
	for (size_t i = 0; i < len; i++) {
		b->data[b->len++] = digits[byte[i] >> 4];
		b->data[b->len++] = digits[byte[i] & 15];
	}
	b->data[b->len] = '\0';
}

void bl_buf_reset(struct bl_buf *b)
{
	b->len = 0;
	b->failed = false;
	if (b->data)
		b->data[0] = '\0';
}

void bl_buf_free(struct bl_buf *b)
{
	free(b->data);
	b->data = NULL;
	b->len = b->size = 0;
	b->failed = false;
}
