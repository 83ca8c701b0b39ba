#include "fuzz.h"

#define POISON 0xa5

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	assert(text);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}

char *fuzz_next(const uint8_t **data, size_t *size, char end)
{
	const uint8_t *stop = *size > 0 ? memchr(*data, end, *size) : NULL;
	size_t len = stop ? (size_t)(stop - *data) : *size;
	char *text = fuzz_text(*data, len);

	len += stop != NULL;
	*data += len;
	*size -= len;
	return text;
}

/* The shortest form of a code point; its length, or 0 if it is none. */
static size_t encode(uint32_t point, unsigned char ret[4])
{
	size_t len = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
	static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

	if (point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	for (size_t i = len; i-- > 1; point >>= 6)
		ret[i] = (unsigned char)(0x80 | (point & 0x3f));
	ret[0] = (unsigned char)(lead[len] | point);
	return len;
}

/* A character is what comes out again when it is decoded and encoded. */
bool fuzz_utf8(const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + len;
	unsigned char again[4];
	size_t more;

	for (; at < end; at += more + 1) {
		uint32_t point = *at;

		more = *at >= 0xf0 ? 3 : *at >= 0xe0 ? 2 : *at >= 0xc0 ? 1 : 0;
		if (more >= (size_t)(end - at))
			return false;
		if (more > 0)
			point &= 0x3fu >> more;
		for (size_t i = 1; i <= more; i++)
			point = point << 6 | (at[i] & 0x3fu);
		if (encode(point, again) != more + 1 || memcmp(again, at, more + 1) != 0)
			return false;
	}
	return true;
}

void fuzz_poison(void *what, size_t size)
{
	memset(what, POISON, size);
}

bool fuzz_poisoned(const void *what, size_t size)
{
	const unsigned char *byte = what;

	for (size_t i = 0; i < size; i++)
		if (byte[i] != POISON)
			return false;
	return true;
}

void fuzz_check_error(const struct bl_err *err, int code)
{
	size_t len = strnlen(err->msg, sizeof(err->msg));

	assert(err->code == code);
	assert(len > 0 && len < sizeof(err->msg));
	assert(fuzz_utf8(err->msg, len));
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)err->msg[i] >= ' ' && err->msg[i] != 0x7f);
}
