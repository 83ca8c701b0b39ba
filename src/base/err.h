/* An error: code, server's number, message. The code is set once, where the error is found;
 * each layer on the way up adds a prefix: "acquire order/4711: execute: ...". */
#ifndef BL_BASE_ERR_H
#define BL_BASE_ERR_H

#include <stdarg.h>
#include <stddef.h>

#include "bizlock.h"

struct bl_err {
	int code;         /* enum bizlock_error */
	unsigned native;  /* the error number of the server or connector, 0: none */
	char msg[512];    /* NUL-terminated UTF-8; '?' for a control character or a stray byte */
	unsigned refused; /* such a number, if a connection was refused, so that nothing was sent */
};

/* Replaces the error. Returns code, so that `return bl_err_set(...)` is possible. */
int bl_err_set(struct bl_err *e, int code, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the message. Returns the error's code. */
int bl_err_wrap(struct bl_err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* vsnprintf() for texts that people read or log, with keys, owners, paths and the server's words
 * in them: a control character or a stray byte becomes '?', and a text that is too long is cut off
 * behind a whole character. */
void bl_err_format(char *ret, size_t size, const char *fmt, va_list args)
        __attribute__((format(printf, 3, 0)));

/* OK, no number, no message. */
static inline void bl_err_clear(struct bl_err *e)
{
	e->code = BIZLOCK_OK;
	e->native = e->refused = 0;
	e->msg[0] = '\0';
}

#endif
