/* Well-formed UTF-8 as RFC 3629 has it: no overlong forms, surrogates, or code
 * points past U+10FFFF: what the server would refuse or, worse, cut off. */
#ifndef BL_BASE_UTF8_H
#define BL_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the character that begins here, of `left` bytes (at least 1); 0: none does. */
size_t bl_utf8_character(const char *text, size_t left);

bool bl_utf8_valid(const char *s, size_t len);

#endif
