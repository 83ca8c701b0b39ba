/* A target takes one input, gives it to a parser, and asserts what the parser promises. It
 * is built twice: with clang's libFuzzer, which invents inputs (tests/fuzz/run.sh), and with
 * replay.c, which reads them from tests/fuzz/corpus. */
#ifndef FUZZ_H
#define FUZZ_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* On the heap and not a byte larger than needed, so that AddressSanitizer notices a read
 * behind it. The caller frees it. */
char *fuzz_text(const uint8_t *data, size_t size);

/* The text up to the next `end` or the end of the input, as above; *data and *size move on. */
char *fuzz_next(const uint8_t **data, size_t *size, char end);

/* Well-formed UTF-8, told in another way than the library tells it. */
bool fuzz_utf8(const char *text, size_t len);

/* Fills what a parser must leave alone when it fails, and tells whether it did. */
void fuzz_poison(void *what, size_t size);
bool fuzz_poisoned(const void *what, size_t size);

/* `err` says `code`, with a message that can be shown: UTF-8 and no control characters. */
void fuzz_check_error(const struct bl_err *err, int code);

#endif
