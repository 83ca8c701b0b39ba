/* bizlock reap: runs the reaper, shows its progress and result, and stops it on signals. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/commands.h"

#define YEARS_100_MS 3155760000000
#define REDRAW_MS 100
#define BAR_WIDTH 30

struct options {
	int64_t older_than_ms, pause_ms;
	uint64_t batch, max;
	bool dry_run, json, quiet;
};

#define AT(field) offsetof(struct options, field)

const struct cli_option cli_reap_options[] = {
        {"older-than", 0, CLI_DURATION, AT(older_than_ms), 0, YEARS_100_MS, "DURATION",
         "since the lease, or the use, has ended; 1h"},
        {"batch", 0, CLI_NUMBER, AT(batch), 1, 10000, "N", "rows in one transaction; 500"},
        {"pause", 0, CLI_DURATION, AT(pause_ms), 0, UINT32_MAX, "DURATION",
         "between two of these; 0"},
        {"max", 0, CLI_NUMBER, AT(max), 0, INT64_MAX, "N", "rows in all; 0: no limit"},
        {"dry-run", 0, CLI_FLAG, AT(dry_run), 0, 0, NULL, "count, and purge nothing"},
        {"json", 0, CLI_FLAG, AT(json), 0, 0, NULL, "the numbers as JSON"},
        {"quiet", 'q', CLI_FLAG, AT(quiet), 0, 0, NULL, "nothing but errors"},
        {0},
};

const char cli_reap_more[] =
        "Purges what dead holders left, rests that are over, and rows of row locks that\n"
        "nobody uses. It waits for nobody, and nobody waits long for it. While another\n"
        "reaper is at work it does nothing, and exits by 0. For cron: bizlock-reaper,\n"
        "which is the same.\n";

static volatile sig_atomic_t came; /* the signal that is to end this process */
static bizlock *volatile reaper;   /* NULL: the reaper is not at work */

/* Interrupts the reaper, which may be in a long pause between two batches. Only the main thread
 * gets signals (see bl_thread_start()), so the client is not being freed meanwhile. */
static void note(int number)
{
	came = number;
	if (reaper)
		bizlock_interrupt(reaper);
}

static void catch_signals(void)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction ours = {.sa_handler = note, .sa_flags = SA_RESTART}, now;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (sigaction(numbers[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaction(numbers[i], &ours, NULL);
}

struct reaping {
	struct options o;
	bizlock_reap_result so_far;
	int64_t began_ms, drawn_ms;
	bool bar;
};

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static uint64_t purged(const bizlock_reap_result *r)
{
	return r->leases + r->rests + r->row_locks;
}

/* ---- the progress bar ---------------------------------------------------------------- */

/* The number of rows is the server's estimate, so the bar shows 100 % only at the end. */
static void draw(const bizlock_reap_result *r)
{
	uint64_t percent = r->rows ? r->looked_at * 100 / r->rows : 0;
	int full;

	percent = percent < 99 ? percent : 99;
	full = (int)(percent * BAR_WIDTH / 100);
	fprintf(stderr, "\r[%.*s%*s] %2" PRIu64 "%%  %" PRIu64 " purged\033[K", full,
	        "##############################", BAR_WIDTH - full, "", percent, purged(r));
}

static int progress(void *arg, const bizlock_reap_result *so_far)
{
	struct reaping *r = arg;
	int64_t now = now_ms();

	r->so_far = *so_far;
	if (r->bar && now - r->drawn_ms >= REDRAW_MS) {
		draw(so_far);
		r->drawn_ms = now;
	}
	return came;
}

static void end_bar(const struct reaping *r)
{
	if (r->bar && r->drawn_ms)
		fprintf(stderr, "\r\033[K");
}

/* ---- what was done ------------------------------------------------------------------- */

static void print_json(const struct reaping *r, bool complete)
{
	printf("{\n   \"dry_run\": %s,\n   \"complete\": %s,\n   \"leases\": %" PRIu64
	       ",\n   \"rests\": %" PRIu64 ",\n   \"row_locks\": %" PRIu64
	       ",\n   \"passed_over\": %" PRIu64 ",\n   \"looked_at\": %" PRIu64
	       ",\n   \"elapsed_ms\": %" PRId64 "\n}\n",
	       r->o.dry_run ? "true" : "false", complete ? "true" : "false", r->so_far.leases,
	       r->so_far.rests, r->so_far.row_locks, r->so_far.passed_over, r->so_far.looked_at,
	       now_ms() - r->began_ms);
}

static void print(const struct reaping *r, bool complete)
{
	char took[CLI_DURATION_SIZE];

	if (r->o.json)
		print_json(r, complete);
	else if (!r->o.quiet)
		printf("%s %" PRIu64 " of %" PRIu64 " rows in %s: %" PRIu64 " leases, %" PRIu64
		       " rests, %" PRIu64 " row locks; passed over %" PRIu64 "%s\n",
		       r->o.dry_run ? "would purge" : "purged", purged(&r->so_far),
		       r->so_far.looked_at, cli_show_duration(now_ms() - r->began_ms, took),
		       r->so_far.leases, r->so_far.rests, r->so_far.row_locks,
		       r->so_far.passed_over, complete ? "" : "; not to the end");
}

static int reap(struct cli *c, struct reaping *r)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;
	int rc;

	opts.older_than_ms = r->o.older_than_ms;
	opts.batch = (uint32_t)r->o.batch;
	opts.pause_ms = (uint32_t)r->o.pause_ms;
	opts.max = r->o.max;
	opts.flags = r->o.dry_run ? BIZLOCK_REAP_DRY_RUN : 0;
	opts.progress = progress;
	opts.arg = r;
	reaper = c->lock;
	rc = bizlock_reap(c->lock, &opts, &result);
	reaper = NULL;
	end_bar(r);
	if (rc == BIZLOCK_OK)
		r->so_far = result;
	if (rc == BIZLOCK_CANCELLED && came)
		rc = BIZLOCK_OK; /* progress() has noted what was done until then */
	if (rc == BIZLOCK_BUSY && !r->o.quiet)
		cli_say("%s", bizlock_errmsg(c->lock));
	else if (rc != BIZLOCK_OK && rc != BIZLOCK_BUSY)
		cli_failed(c, rc);
	if (rc != BIZLOCK_BUSY || r->o.json)
		print(r, rc == BIZLOCK_OK && !came);
	c->die_by = came;
	return rc == BIZLOCK_BUSY ? CLI_DONE : (int)cli_exit_of(rc);
}

int cli_reap(struct cli *c)
{
	struct reaping r = {.o = {.older_than_ms = 3600000, .batch = 500}};
	int code = cli_begin(c, &r.o);

	if (code != CLI_GO_ON)
		return code;
	r.bar = isatty(STDERR_FILENO) && !r.o.quiet;
	r.began_ms = now_ms();
	catch_signals();
	return reap(c, &r);
}
