/* Parses and formats numbers and durations; finds the name nearest to a misspelt one. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"

#define WORD_MAX 40 /* longer than any name */
#define NEAR 2      /* largest distance at which a name is suggested */

#define SCALE_MAX UINT64_C(1000000000) /* of a fraction: 9 digits */

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {{"", 1000},     {"ms", 1},      {"s", 1000},       {"m", 60000},
             {"min", 60000}, {"h", 3600000}, {"hour", 3600000}, {"d", 86400000}};

#define UNIT_COUNT (sizeof(units) / sizeof(units[0]))

/* Reads digits; returns the text behind them. NULL: no digits, or a number too large. */
static const char *read_digits(const char *text, uint64_t *ret)
{
	uint64_t number = 0;

	if (*text < '0' || *text > '9')
		return NULL;
	for (; *text >= '0' && *text <= '9'; text++)
		if (__builtin_mul_overflow(number, (uint64_t)10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return NULL;
	*ret = number;
	return text;
}

bool cli_read_number(const char *text, uint64_t *ret)
{
	const char *end = read_digits(text, ret);

	return end && !*end;
}

static const struct unit *find_unit(const char *name)
{
	for (size_t i = 0; i < UNIT_COUNT; i++)
		if (strcmp(name, units[i].name) == 0)
			return &units[i];
	return NULL;
}

/* A fraction is rounded up: half a millisecond must not become 0, which means "try once". Not by
 * strtod(), which expects a comma in some locales. */
bool cli_read_duration(const char *text, int64_t *ret_ms)
{
	uint64_t whole = 0, part = 0, scale = 1;
	const char *end = *text == '.' ? text : read_digits(text, &whole);
	const struct unit *unit;

	if (end && *end == '.') {
		const char *digits = end + 1;

		end = read_digits(digits, &part);
		for (; end && digits < end && scale < SCALE_MAX; digits++)
			scale *= 10;
		if (end && digits < end)
			return false;
	}
	unit = end ? find_unit(end) : NULL;
	if (!unit || __builtin_mul_overflow(whole, unit->ms, ret_ms))
		return false;
	part = (part * (uint64_t)unit->ms + scale - 1) / scale;
	return !__builtin_add_overflow(*ret_ms, part, ret_ms);
}

const char *cli_show_duration(int64_t ms, char buf[CLI_DURATION_SIZE])
{
	int64_t s = ms / 1000;

	if (ms < 1000)
		snprintf(buf, CLI_DURATION_SIZE, "%" PRId64 "ms", ms);
	else if (s < 60)
		snprintf(buf, CLI_DURATION_SIZE, "%" PRId64 ".%" PRId64 "s", s, ms % 1000 / 100);
	else if (s < 3600)
		snprintf(buf, CLI_DURATION_SIZE, "%" PRId64 "m %" PRId64 "s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(buf, CLI_DURATION_SIZE, "%" PRId64 "h %" PRId64 "m", s / 3600,
		         s % 3600 / 60);
	else
		snprintf(buf, CLI_DURATION_SIZE, "%" PRId64 "d %" PRId64 "h", s / 86400,
		         s % 86400 / 3600);
	return buf;
}

static unsigned least(unsigned a, unsigned b, unsigned c)
{
	unsigned low = a < b ? a : b;

	return low < c ? low : c;
}

/* Levenshtein's: characters to insert, remove or replace. Both short. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[WORD_MAX + 1];
	size_t len = strlen(b);

	for (unsigned j = 0; j <= len; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1]; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			unsigned above = row[j];

			row[j] =
			        least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[len];
}

struct cli_near cli_near_to(const char *word)
{
	return (struct cli_near){word, NULL, NEAR + 1};
}

void cli_near_try(struct cli_near *near, const char *name)
{
	unsigned d;

	if (strlen(near->word) >= WORD_MAX || strlen(name) > WORD_MAX)
		return;
	d = distance(near->word, name);
	if (d < near->distance && d < strlen(name)) {
		near->distance = d;
		near->name = name;
	}
}
