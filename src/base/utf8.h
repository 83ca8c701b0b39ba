/* Well-formed UTF-8 as RFC 3629 has it. Overlong forms, surrogates and code points
 * past U+10FFFF are not: the server would refuse them or, worse, cut the text off. */
#ifndef BL_BASE_UTF8_H
#define BL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* How many bytes the character has that begins here; 0: none does. There are `left`
 * bytes, at least 1. */
size_t bl_utf8_character(const char *text, size_t left);

bool bl_utf8_valid(const char *s, size_t len);

#endif
