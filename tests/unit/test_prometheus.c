#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/numbers.h"
#include "core/prometheus.h"

#define NAME "bizlock_"

static struct bl_buf text = BL_BUF_INIT(65536);

static const char *write_text(const bizlock_numbers *numbers)
{
	bl_buf_reset(&text);
	bl_prometheus_write(numbers, &text);
	cr_assert_not(text.failed);
	return text.data;
}

static void forget_text(void)
{
	bl_buf_free(&text);
}

TestSuite(prometheus, .fini = forget_text);

/* Every field has a value of its own. */
static bizlock_numbers distinct(void)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;
	uint64_t next = 100;

	n.held = next++;
#define SET(name, field, kind, metric, label, help) n.field = next++;
	BL_COUNTERS(SET)
#undef SET
	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		n.waits[i] = next++;
	return n;
}

/* ---- the grammar ---------------------------------------------------------------- */

/* The metric that the line before belongs to. */
struct family {
	char name[64], type[16];
	bool helped, typed;
	unsigned samples;
};

static size_t name_length(const char *at)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_"
	                              "ABCDEFGHIJKLMNOPQRSTUVWXYZ:";

	cr_assert(*at && strchr(letters, *at), "no name: %s", at);
	return strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_:0123456789");
}

static bool is_number(const char *s)
{
	char *end;

	if (strspn(s, "0123456789.") != strlen(s) || !*s)
		return false;
	strtod(s, &end);
	return *end == '\0';
}

static void check_help(struct family *f, const char *line)
{
	size_t length = name_length(line);

	cr_assert(!f->name[0] || f->samples > 0, "%s has no samples", f->name);
	*f = (struct family){.helped = true};
	snprintf(f->name, sizeof(f->name), "%.*s", (int)length, line);
	cr_assert_eq(strncmp(line, NAME, strlen(NAME)), 0);
	cr_assert(line[length] == ' ' && line[length + 1], "no help: %s", line);
	cr_assert_null(strchr(line, '\\'), "to be escaped: %s", line);
}

static void check_type(struct family *f, const char *line)
{
	size_t length = name_length(line);

	cr_assert(f->helped && !f->typed, "%s", line);
	cr_assert(strlen(f->name) == length && strncmp(line, f->name, length) == 0, "%s", line);
	snprintf(f->type, sizeof(f->type), "%s", line + length + 1);
	cr_assert(strcmp(f->type, "counter") == 0 || strcmp(f->type, "gauge") == 0 ||
	                  strcmp(f->type, "histogram") == 0,
	          "%s", line);
	/* What scrapers demand or complain about. */
	cr_assert_eq(strcmp(f->type, "counter") == 0,
	             strcmp(f->name + length - strlen("_total"), "_total") == 0, "%s", line);
	f->typed = true;
}

/* name="value" between braces; returns what follows. */
static const char *check_label(const char *at)
{
	if (*at != '{')
		return at;
	at += 1 + name_length(at + 1);
	cr_assert_eq(strncmp(at, "=\"", 2), 0, "%s", at);
	at += 2;
	at += strcspn(at, "\"\\\n");
	cr_assert_eq(strncmp(at, "\"}", 2), 0, "%s", at);
	return at + 2;
}

static void check_sample(struct family *f, const char *line)
{
	size_t length = name_length(line), base = strlen(f->name);
	const char *rest;
	char suffix[16];

	cr_assert(f->typed, "%s", line);
	cr_assert(length >= base && strncmp(line, f->name, base) == 0, "%s: %s", f->name, line);
	snprintf(suffix, sizeof(suffix), "%.*s", (int)(length - base), line + base);
	if (strcmp(f->type, "histogram") == 0)
		cr_assert(strcmp(suffix, "_bucket") == 0 || strcmp(suffix, "_sum") == 0 ||
		                  strcmp(suffix, "_count") == 0,
		          "%s", line);
	else
		cr_assert_str_eq(suffix, "", "%s", line);
	rest = check_label(line + length);
	cr_assert(*rest == ' ' && is_number(rest + 1), "no value: %s", line);
	f->samples++;
}

static void check_line(struct family *f, const char *line)
{
	if (strncmp(line, "# HELP ", 7) == 0)
		check_help(f, line + 7);
	else if (strncmp(line, "# TYPE ", 7) == 0)
		check_type(f, line + 7);
	else
		check_sample(f, line);
}

Test(prometheus, every_line_is_well_formed)
{
	bizlock_numbers n = distinct();
	struct family f = {.name = ""};
	char *all = strdup(write_text(&n)), *rest, *line;
	size_t length = strlen(all);

	cr_assert_eq(all[length - 1], '\n', "the last line must end, too");
	cr_assert_null(strstr(all, "\n\n"));
	for (line = strtok_r(all, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		check_line(&f, line);
	cr_assert_gt(f.samples, 0);
	free(all);
}

Test(prometheus, no_line_comes_twice)
{
	bizlock_numbers n = distinct();
	const char *all = write_text(&n);

	for (const char *line = all; *line; line = strchr(line, '\n') + 1) {
		size_t key = line[0] == '#' ? strcspn(line, "\n") : strcspn(line, " ");
		char start[256];

		snprintf(start, sizeof(start), "\n%.*s", (int)key + 1, line);
		cr_expect_null(strstr(line, start), "%s", start);
	}
}

/* ---- what they say -------------------------------------------------------------- */

static void has_line(const bizlock_numbers *n, const char *line)
{
	const char *at = strstr(write_text(n), line);

	cr_expect(at && at[strlen(line)] == '\n' && (at == text.data || at[-1] == '\n'),
	          "\"%s\" not in:\n%s", line, text.data);
}

Test(prometheus, every_number_is_there)
{
	bizlock_numbers n = distinct();

	has_line(&n, "# TYPE bizlock_held gauge");
	has_line(&n, "bizlock_held 100");
	has_line(&n, "# TYPE bizlock_acquired_total counter");
	has_line(&n, "bizlock_acquired_total 101");
	has_line(&n, "bizlock_taken_over_total 102");
	has_line(&n, "bizlock_reentered_total 103");
	has_line(&n, "bizlock_not_acquired_total{reason=\"busy\"} 104");
	has_line(&n, "bizlock_not_acquired_total{reason=\"timeout\"} 105");
	has_line(&n, "bizlock_not_acquired_total{reason=\"cancelled\"} 106");
	has_line(&n, "bizlock_not_acquired_total{reason=\"unknown\"} 107");
	has_line(&n, "bizlock_released_total 108");
	has_line(&n, "bizlock_lost_total 109");
	has_line(&n, "bizlock_renewals_total 110");
	has_line(&n, "bizlock_renew_lag_seconds_total 0.000111");
	has_line(&n, "bizlock_renew_lag_max_seconds 0.000112");
	has_line(&n, "bizlock_retried_total{class=\"conflict\"} 113");
	has_line(&n, "bizlock_retried_total{class=\"stopped\"} 114");
	has_line(&n, "bizlock_retried_total{class=\"lost\"} 115");
	has_line(&n, "bizlock_reconnects_total 116");
	has_line(&n, "bizlock_clock_steps_total 117");
	has_line(&n, "bizlock_wait_seconds_sum 0.000118");
	has_line(&n, "bizlock_renew_failed_total{reason=\"unreached\"} 119");
	has_line(&n, "bizlock_renew_failed_total{reason=\"refused\"} 120");
	has_line(&n, "bizlock_renew_failed_total{reason=\"fenced\"} 121");
}

Test(prometheus, microseconds_become_seconds)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	n.wait_us = 1234567890;
	n.renew_lag_us = 1000000;
	n.renew_lag_max_us = UINT64_MAX;
	has_line(&n, "# TYPE bizlock_wait_seconds histogram");
	has_line(&n, "bizlock_wait_seconds_sum 1234.567890");
	has_line(&n, "bizlock_renew_lag_seconds_total 1.000000");
	has_line(&n, "bizlock_renew_lag_max_seconds 18446744073709.551615");
	has_line(&n, "bizlock_acquired_total 0");
}

Test(prometheus, the_buckets_are_cumulative)
{
	static const char *const bounds[BIZLOCK_WAIT_BUCKETS] = {
	        "0.001", "0.002", "0.005", "0.01", "0.02", "0.05", "0.1",
	        "0.2",   "0.5",   "1",     "5",    "30",   "+Inf"};
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;
	uint64_t sum = 0;
	char line[128];

	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		n.waits[i] = (uint64_t)1 << i;
	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++) {
		sum += n.waits[i];
		snprintf(line, sizeof(line), "bizlock_wait_seconds_bucket{le=\"%s\"} %llu",
		         bounds[i], (unsigned long long)sum);
		has_line(&n, line);
	}
	snprintf(line, sizeof(line), "bizlock_wait_seconds_count %llu", (unsigned long long)sum);
	has_line(&n, line);
}

/* bizlock_ops.h promises this size to callers that make the buffer. */
Test(prometheus, four_kilobytes_are_enough)
{
	bizlock_numbers n;

	memset(&n, 0xff, sizeof(n));
	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		n.waits[i] = i == 0 ? UINT64_MAX : 0;
	cr_expect_lt(strlen(write_text(&n)), 4096, "%zu", strlen(text.data));
}

Test(prometheus, what_does_not_fit_is_told)
{
	bizlock_numbers n = distinct();
	struct bl_buf small = BL_BUF_INIT(100);

	bl_prometheus_write(&n, &small);
	cr_expect(small.failed);
	bl_buf_free(&small);
}
