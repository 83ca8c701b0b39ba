#include "core/prometheus.h"

#include <inttypes.h>
#include <string.h>

#include "core/numbers.h"

#define PREFIX "bizlock_"

enum kind {
	COUNT,       /* a counter */
	NOW,         /* a gauge */
	SECONDS,     /* a counter of microseconds, shown as seconds */
	SECONDS_NOW, /* a gauge of microseconds, shown as seconds */
	WAITS        /* the histogram; the field is its sum */
};

static const char *const types[] = {"counter", "gauge", "counter", "gauge", "histogram"};

static const struct metric {
	size_t field;
	enum kind kind;
	const char *name, *label, *help; /* NULL: of the same name as the one before */
} metrics[] = {{offsetof(bizlock_numbers, held), NOW, "held", "", "Locks held now."},
#define METRIC(name, field, kind, metric, label, help)                                             \
	{offsetof(bizlock_numbers, field), kind, metric, label, help},
               BL_COUNTERS(METRIC)
#undef METRIC
};

static uint64_t value_of(const struct metric *m, const bizlock_numbers *numbers)
{
	uint64_t value;

	memcpy(&value, (const char *)numbers + m->field, sizeof(value));
	return value;
}

/* In whole numbers, because printf() writes the decimal point of the program's locale. */
static void add_seconds(struct bl_buf *b, uint64_t us)
{
	bl_buf_addf(b, "%" PRIu64 ".%06" PRIu64 "\n", us / 1000000, us % 1000000);
}

/* The bound is a label, and labels are compared as text: 0.1, not 0.100. */
static void add_bound(struct bl_buf *b, uint32_t ms)
{
	uint32_t fraction = ms % 1000;
	int digits = 3;

	for (; digits > 0 && fraction % 10 == 0; digits--)
		fraction /= 10;
	bl_buf_addf(b, "%" PRIu32, ms / 1000);
	if (digits > 0)
		bl_buf_addf(b, ".%0*" PRIu32, digits, fraction);
}

/* Buckets are cumulative: a bucket counts all that waited as long or less. */
static void add_buckets(struct bl_buf *b, const char *name, const uint64_t *waits)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BIZLOCK_WAIT_BUCKETS; i++) {
		sum += waits[i];
		bl_buf_addf(b, PREFIX "%s_bucket{le=\"", name);
		if (i < BIZLOCK_WAIT_BUCKETS - 1)
			add_bound(b, bl_wait_bounds_ms[i]);
		else
			bl_buf_adds(b, "+Inf");
		bl_buf_addf(b, "\"} %" PRIu64 "\n", sum);
	}
	bl_buf_addf(b, PREFIX "%s_count %" PRIu64 "\n", name, sum);
}

static void add_head(struct bl_buf *b, const struct metric *m)
{
	bl_buf_addf(b, "# HELP " PREFIX "%s %s\n", m->name, m->help);
	bl_buf_addf(b, "# TYPE " PREFIX "%s %s\n", m->name, types[m->kind]);
}

static void add_sample(struct bl_buf *b, const struct metric *m, uint64_t value)
{
	const char *open = m->label[0] ? "{" : "", *close = m->label[0] ? "}" : "";

	bl_buf_addf(b, PREFIX "%s%s%s%s%s ", m->name, m->kind == WAITS ? "_sum" : "", open,
	            m->label, close);
	if (m->kind == COUNT || m->kind == NOW)
		bl_buf_addf(b, "%" PRIu64 "\n", value);
	else
		add_seconds(b, value);
}

void bl_prometheus_write(const bizlock_numbers *numbers, struct bl_buf *ret)
{
	for (size_t i = 0; i < sizeof(metrics) / sizeof(metrics[0]); i++) {
		const struct metric *m = &metrics[i];

		if (m->help)
			add_head(ret, m);
		if (m->kind == WAITS)
			add_buckets(ret, m->name, numbers->waits);
		add_sample(ret, m, value_of(m, numbers));
	}
}
