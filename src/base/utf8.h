/* Checks for well-formed UTF-8 (RFC 3629). Overlong forms, surrogates and code points past U+10FFFF
 * are not well-formed: the server would refuse them or, worse, cut the text off there. */
#ifndef BL_BASE_UTF8_H
#define BL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* The number of bytes of the character that begins here; 0: no character does. `left`: the bytes
 * that there are, at least 1. */
size_t bl_utf8_character(const char *text, size_t left);

bool bl_utf8_valid(const char *s, size_t len);

#endif
