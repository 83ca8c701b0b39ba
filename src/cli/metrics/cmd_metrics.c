/* bizlock metrics: numbers about the tables, in Prometheus' text exposition format, version 0.0.4.
 * What a single client counts is told by bizlock_stats_prometheus(); the names here begin with
 * bizlock_table_ (counts of locks, by type) or bizlock_run_ (a job, by type and id), so that all
 * can be collected together. */
#include <errno.h>
#include <inttypes.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/metrics/run_metrics.h"

/* Types are strangers' text, and each has seven time series at the collector. */
#define TYPES_MAX 100
#define OTHER "(other)" /* the types beyond that, in one; and a type that has this name */

/* One more query for each 512 locks asks who waits. */
#define WAITED_FOR_MAX 10000

/* Ids are strangers' text, too, and each has six time series at most. */
#define RUNS_MAX 500

struct options {
	const char *output;
};

const struct cli_option cli_metrics_options[] = {
        {"output", 0, CLI_TEXT, offsetof(struct options, output), 0, 0, "FILE",
         "write it in one step, for a textfile collector"},
        {0},
};

const char cli_metrics_more[] =
        "Prints how many locks are held or rest, how many rows are stale, how many\n"
        "connections wait, and the age of the oldest hold, by biz_type: the 100 types\n"
        "with most rows, and all others as \"(other)\". Of the 500 jobs whose recorded\n"
        "runs began last: when a run began and was done, how long it took, its exit code,\n"
        "how many failed in a row. In Prometheus' format; for cron:\n"
        "  bizlock metrics --output /var/lib/prometheus/node-exporter/bizlock.prom\n";

/* ---- counting ------------------------------------------------------------------------- */

enum mode { EXCLUSIVE, SHARED, MODES };

static const char *const mode_names[MODES] = {"exclusive", "shared"};

struct type {
	char *label; /* biz_type as a label's value */
	uint64_t held[MODES], resting[MODES], stale, waiters;
	int64_t oldest_ms;
	uint64_t rows;
	struct type *next;
};

struct count {
	void *types;        /* of tsearch(), by label */
	struct type *first; /* the same types as a list */
	size_t type_count;
	bizlock_key *held; /* those that somebody may wait for, each once */
	size_t held_count, held_room;
	struct cli_runs runs;
	bool runs_are_known;
	bool failed; /* out of memory */
};

static int compare_labels(const void *a, const void *b)
{
	return strcmp(((const struct type *)a)->label, ((const struct type *)b)->label);
}

/* NULL: out of memory. */
static struct type *find_type(struct count *all, const char *biz_type)
{
	struct type wanted = {.label = cli_label_value(biz_type)}, *ret, **node;

	node = wanted.label ? tfind(&wanted, &all->types, compare_labels) : NULL;
	if (node) {
		free(wanted.label);
		return *node;
	}
	ret = wanted.label ? malloc(sizeof(*ret)) : NULL;
	if (ret)
		*ret = wanted;
	if (!ret || !tsearch(ret, &all->types, compare_labels)) {
		free(wanted.label);
		free(ret);
		return NULL;
	}
	ret->next = all->first;
	all->first = ret;
	all->type_count++;
	return ret;
}

static bool same_key(const bizlock_key *a, const bizlock_info *b)
{
	return strcmp(a->biz_id, b->biz_id) == 0 && strcmp(a->biz_type, b->biz_type) == 0;
}

/* The rows of one key come together. One key too many is kept, and tells that there are too
 * many. */
static bool keep_key(struct count *all, const bizlock_info *info)
{
	bizlock_key *key;

	if (all->held_count > WAITED_FOR_MAX ||
	    (all->held_count && same_key(&all->held[all->held_count - 1], info)))
		return true;
	if (all->held_count == all->held_room) {
		size_t room = all->held_room ? 2 * all->held_room : 64;
		bizlock_key *held = reallocarray(all->held, room, sizeof(*held));

		if (!held)
			return false;
		all->held = held;
		all->held_room = room;
	}
	key = &all->held[all->held_count++];
	*key = (bizlock_key){strdup(info->biz_type), strdup(info->biz_id)};
	return key->biz_type && key->biz_id;
}

/* A contender that waits for the sharers to leave has an owner, and depth 0; it counts as a
 * waiter. */
static int count_row(void *arg, const bizlock_info *info)
{
	struct count *all = arg;
	struct type *type = find_type(all, info->biz_type);
	enum mode mode = info->flags & BIZLOCK_SHARED ? SHARED : EXCLUSIVE;

	all->failed = !type || (info->left_ms > 0 && !keep_key(all, info));
	if (all->failed)
		return 1;
	type->rows++;
	if (info->left_ms <= 0) {
		type->stale++;
	} else if (!*info->owner) {
		type->resting[mode]++;
	} else if (info->depth > 0) {
		type->held[mode]++;
		type->oldest_ms = info->held_ms > type->oldest_ms ? info->held_ms : type->oldest_ms;
	}
	return 0;
}

static int count_waiter(void *arg, const bizlock_waiter *waiter)
{
	struct count *all = arg;
	struct type *type = find_type(all, waiter->biz_type);

	all->failed = !type;
	if (type)
		type->waiters++;
	return all->failed;
}

static bool waiters_are_known(const struct count *all)
{
	return all->held_count <= WAITED_FOR_MAX;
}

/* Without the table biz_run (SCHEMA), or without a privilege to read it (DB), the numbers of locks
 * are complete, and the command goes on: otherwise alerts about locks would stay silent. */
static int count_runs(bizlock *lock, struct count *all)
{
	int rc = bizlock_each_run(lock, NULL, NULL, cli_runs_keep, &all->runs);

	all->failed = all->runs.failed;
	all->runs_are_known = rc == BIZLOCK_OK;
	return rc == BIZLOCK_SCHEMA || rc == BIZLOCK_DB ? BIZLOCK_OK : rc;
}

/* An error of the library. */
static int count(bizlock *lock, struct count *all)
{
	int rc = bizlock_each(lock, NULL, count_row, all);

	if (rc == BIZLOCK_OK && !all->failed && all->held_count && waiters_are_known(all))
		rc = bizlock_waiters(lock, all->held, all->held_count, count_waiter, all);
	if (rc == BIZLOCK_OK && !all->failed)
		rc = count_runs(lock, all);
	return rc == BIZLOCK_OK && all->failed ? BIZLOCK_NOMEM : rc;
}

static void free_type(void *arg)
{
	struct type *type = arg;

	free(type->label);
	free(type);
}

static void free_count(struct count *all)
{
	tdestroy(all->types, free_type);
	for (size_t i = 0; i < all->held_count; i++) {
		free((char *)all->held[i].biz_type);
		free((char *)all->held[i].biz_id);
	}
	free(all->held);
	cli_runs_free(&all->runs);
}

/* ---- choosing types --------------------------------------------------------------------- */

/* The types that are told apart, and last the others in one. */
struct chosen {
	struct type **all, other;
	const struct type *list[TYPES_MAX + 1];
	size_t all_count, count;
};

static bool is_other(const struct type *type)
{
	return strcmp(type->label, OTHER) == 0;
}

/* Those with most rows first. A type that has the name of the others comes last, so that it is one
 * of them, if there are others. */
static int compare_rows(const void *a, const void *b)
{
	const struct type *x = *(struct type *const *)a, *y = *(struct type *const *)b;

	if (is_other(x) || is_other(y))
		return is_other(x) - is_other(y);
	if (x->rows != y->rows)
		return x->rows < y->rows ? 1 : -1;
	return strcmp(x->label, y->label);
}

static void add_to_other(struct type *other, const struct type *type)
{
	for (int mode = 0; mode < MODES; mode++) {
		other->held[mode] += type->held[mode];
		other->resting[mode] += type->resting[mode];
	}
	other->stale += type->stale;
	other->waiters += type->waiters;
	if (type->oldest_ms > other->oldest_ms)
		other->oldest_ms = type->oldest_ms;
}

static bool choose_types(const struct count *all, struct chosen *ret)
{
	*ret = (struct chosen){.all = calloc(all->type_count + 1, sizeof(*ret->all)),
	                       .other = {.label = (char *)OTHER}};
	if (!ret->all)
		return false;
	for (struct type *type = all->first; type; type = type->next)
		ret->all[ret->all_count++] = type;
	qsort(ret->all, ret->all_count, sizeof(*ret->all), compare_rows);
	for (size_t i = 0; i < ret->all_count; i++) {
		if (i < TYPES_MAX) {
			ret->list[ret->count++] = ret->all[i];
			continue;
		}
		add_to_other(&ret->other, ret->all[i]);
		ret->list[ret->count] = &ret->other;
	}
	ret->count += ret->list[ret->count] != NULL;
	return true;
}

/* ---- writing ----------------------------------------------------------------------------- */

/* A number for each type; with modes, for each mode of it. */
static void write_counts(FILE *out, const struct chosen *c, const char *name, const char *help,
                         size_t field, bool by_mode)
{
	cli_metric_head(out, name, help);
	for (size_t i = 0; i < c->count; i++) {
		const uint64_t *n =
		        (const uint64_t *)(const void *)((const char *)c->list[i] + field);

		for (int mode = 0; by_mode && mode < MODES; mode++)
			fprintf(out, "%s{type=\"%s\",mode=\"%s\"} %" PRIu64 "\n", name,
			        c->list[i]->label, mode_names[mode], n[mode]);
		if (!by_mode)
			fprintf(out, "%s{type=\"%s\"} %" PRIu64 "\n", name, c->list[i]->label, *n);
	}
}

/* In whole numbers, because printf() writes the decimal point of the locale. */
static void write_oldest(FILE *out, const struct chosen *c)
{
	cli_metric_head(out, "bizlock_table_oldest_hold_seconds",
	                "How long the oldest hold has lasted.");
	for (size_t i = 0; i < c->count; i++)
		fprintf(out,
		        "bizlock_table_oldest_hold_seconds{type=\"%s\"} %" PRId64 ".%03" PRId64
		        "\n",
		        c->list[i]->label, c->list[i]->oldest_ms / 1000,
		        c->list[i]->oldest_ms % 1000);
}

#define AT(field) offsetof(struct type, field)

static void write_locks(FILE *out, const struct count *all, const struct chosen *c)
{
	cli_metric_head(out, "bizlock_table_types", "Types of locks that have a row.");
	fprintf(out, "bizlock_table_types %zu\n", all->type_count);
	write_counts(out, c, "bizlock_table_held", "Holds; of a shared lock, each.", AT(held),
	             true);
	write_counts(out, c, "bizlock_table_resting", "Locks released that nobody gets yet.",
	             AT(resting), true);
	write_counts(out, c, "bizlock_table_stale", "Rows whose lease or rest is over.", AT(stale),
	             false);
	write_oldest(out, c);
	if (waiters_are_known(all))
		write_counts(out, c, "bizlock_table_waiters", "Connections seen waiting.",
		             AT(waiters), false);
}

/* ---- the text ---------------------------------------------------------------------------- */

/* false: out of memory. */
static bool write_all(FILE *out, const struct count *all)
{
	struct chosen chosen;

	if (!choose_types(all, &chosen))
		return false;
	write_locks(out, all, &chosen);
	free(chosen.all);
	return !all->runs_are_known || cli_metric_runs(out, &all->runs);
}

/* The text, to be freed; NULL: out of memory. */
static char *make_text(const struct count *all)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	bool done = out && write_all(out, all);

	if ((out && fclose(out) != 0) || !done) {
		free(text);
		return NULL;
	}
	return text;
}

/* 0, or errno. */
static int write_text(int file, const char *text)
{
	FILE *out = fdopen(file, "w");
	int error = 0;

	if (!out) {
		error = errno;
		close(file);
		return error;
	}
	if (fchmod(file, 0644) != 0 || fputs(text, out) < 0)
		error = errno;
	return fclose(out) != 0 && !error ? errno : error;
}

/* Writes a file beside it, and renames that: a collector that reads at any moment sees the old text
 * or the new. The name of the file beside it does not end as that of `path`, so that collectors
 * pass it over. 0, or errno. */
static int replace_file(const char *path, const char *text)
{
	char *beside = NULL;
	int file, error;

	if (asprintf(&beside, "%s.XXXXXX", path) < 0)
		return ENOMEM;
	file = mkstemp(beside);
	error = file < 0 ? errno : write_text(file, text);
	if (!error && rename(beside, path) != 0)
		error = errno;
	if (file >= 0 && error)
		unlink(beside);
	free(beside);
	return error;
}

/* A rename would replace a device, a pipe or a link by a file: /dev/null, if root asks for it. */
static bool may_be_replaced(const char *path)
{
	struct stat info;

	return lstat(path, &info) != 0 || S_ISREG(info.st_mode);
}

static int put_text(const char *text, const char *path)
{
	int error;

	if (!path) {
		fputs(text, stdout);
		return CLI_DONE;
	}
	if (!may_be_replaced(path))
		return cli_give_up(CLI_OUTPUT, "%s: not a regular file", path);
	error = replace_file(path, text);
	return error ? cli_give_up(CLI_OUTPUT, "%s: %s", path, strerror(error)) : CLI_DONE;
}

int cli_metrics(struct cli *c)
{
	struct options o = {NULL};
	struct count all = {.runs = {.most = RUNS_MAX}};
	int code = cli_begin(c, &o), rc;
	char *text;

	if (code != CLI_GO_ON)
		return code;
	rc = count(c->lock, &all);
	text = rc == BIZLOCK_OK ? make_text(&all) : NULL;
	if (text)
		code = put_text(text, o.output);
	else if (rc == BIZLOCK_OK || all.failed)
		code = cli_give_up(CLI_INTERNAL, "out of memory");
	else
		code = cli_failed(c, rc);
	if (!waiters_are_known(&all))
		cli_say("more than %d locks are held or rest: waiters are not counted",
		        WAITED_FOR_MAX);
	free(text);
	free_count(&all);
	return code;
}
