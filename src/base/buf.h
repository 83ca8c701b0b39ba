/* A growable string with a mandatory cap. A failure is kept in `failed`, so callers append all and
 * check once. */
#ifndef BL_BASE_BUF_H
#define BL_BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bl_buf {
	char *data; /* NUL-terminated once something was added; NULL before */
	size_t len, size, cap;
	bool failed; /* out of memory or over the cap; data is as it was before the failing call */
};

#define BL_BUF_INIT(max_len)                                                                       \
	{                                                                                          \
		NULL, 0, 0, (max_len), false                                                       \
	}

void bl_buf_add(struct bl_buf *b, const void *data, size_t len);
void bl_buf_adds(struct bl_buf *b, const char *text);
void bl_buf_addf(struct bl_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void bl_buf_addv(struct bl_buf *b, const char *fmt, va_list args);
void bl_buf_addu(struct bl_buf *b, uint64_t number); /* decimal: a tenth of what addf costs */
void bl_buf_add_hex(struct bl_buf *b, const void *data, size_t len); /* lower case */
void bl_buf_reset(struct bl_buf *b); /* empty, not failed; keeps the memory */
void bl_buf_free(struct bl_buf *b);

#endif
