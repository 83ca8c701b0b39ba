/* Finds the known name that is nearest to a misspelt one. */
#ifndef BL_CORE_SPELLING_H
#define BL_CORE_SPELLING_H

#include <stddef.h>

/* The name that is nearest to `typed`, among name(0) to name(count - 1), which are shorter than
 * 32 bytes. NULL: none is near. */
const char *bl_nearest(const char *typed, const char *(*name)(size_t), size_t count);

#endif
