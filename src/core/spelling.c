#include "core/spelling.h"

#include <string.h>

#define NAME_MAX_LEN 32
#define NEAR 2 /* largest distance at which a name is suggested */

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned low = a < b ? a : b;

	return low < c ? low : c;
}

/* Levenshtein's: characters to insert, remove or replace. */
static unsigned distance(const char *a, const char *name)
{
	unsigned row[NAME_MAX_LEN + 1];
	size_t len = strlen(name);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			unsigned above = row[j];

			row[j] = least(above + 1, row[j - 1] + 1,
			               diagonal + (a[i - 1] != name[j - 1]));
			diagonal = above;
		}
	}
	return row[len];
}

const char *bl_nearest(const char *typed, const char *(*name)(size_t), size_t count)
{
	const char *ret = NULL;
	unsigned best = NEAR + 1;

	for (size_t i = 0; strnlen(typed, NAME_MAX_LEN) < NAME_MAX_LEN && i < count; i++) {
		unsigned d = distance(typed, name(i));

		if (d < best) {
			best = d;
			ret = name(i);
		}
	}
	return ret;
}
