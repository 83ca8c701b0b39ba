/* The server's clock is set an hour forward and back again, while a crowd takes
 * locks on it. A step forward ends every lease at once. A holder may not know that
 * until its next renewal, but no longer. A step back takes no lock from anybody.
 * No fence goes back, and every key changes hands again.
 *
 *     clock_faults [TIMES [SEED]]
 *
 * TIMES: 1, or 20 where BIZLOCK_FAULT_LONG=1. The clock is that of a private
 * server under libfaketime, which reads the offset from a file. */
#define _GNU_SOURCE 1
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "crowd.h"
#include "losses.h"
#include "own_server.h"
#include "patience.h"
#include "peer.h"

#define HOUR_S 3600
#define LEASE_MS 10000
#define LONG_HOLD_MS 12000
#define SLACK_MS 2500 /* how late a busy machine may be */
/* Until its next renewal, a holder may believe in a lease that is over. */
#define IGNORANT_MS (LEASE_MS / 3 + SLACK_MS)
#define RECOVERY_MS (LEASE_MS + LONG_HOLD_MS + 6000)

static struct own_server server;
static struct world world;
static struct crowd_plan plan = {.processes = 12,
                                 .keys = 4,
                                 .lease_ms = LEASE_MS,
                                 .wait_ms = 12000,
                                 .long_in = 8,
                                 .long_hold_ms = LONG_HOLD_MS};
static char offset_file[64];

/* ---- the clock ----------------------------------------------------------------- */

/* By renaming, so that the server never reads half of it. */
static void write_offset(long seconds)
{
	char path[80];
	FILE *out;

	snprintf(path, sizeof(path), "%s.new", offset_file);
	out = fopen(path, "w");
	if (!out || fprintf(out, "%+ld\n", seconds) < 0 || fclose(out) != 0 ||
	    rename(path, offset_file) != 0)
		die("cannot write %s", path);
}

static long long offset_of_server(void)
{
	return db_number(world.admin,
	                 "SELECT TIMESTAMPDIFF(SECOND, '1970-01-01', UTC_TIMESTAMP(6))") -
	       time(NULL);
}

/* Returns when the server's statements see the new time. */
static void step_to(long seconds)
{
	write_offset(seconds);
	eventually(llabs(offset_of_server() - seconds) < 60);
}

/* The monotonic clock is left alone, because setting a real clock does not change it. */
static void start_server(const char *library)
{
	char args[512];
	int fd;

	snprintf(offset_file, sizeof(offset_file), "/tmp/bizlock-test-XXXXXX");
	if ((fd = mkstemp(offset_file)) < 0)
		die("mkstemp failed");
	close(fd);
	write_offset(0);
	snprintf(args, sizeof(args),
	         "LD_PRELOAD='%s' FAKETIME_TIMESTAMP_FILE='%s' "
	         "FAKETIME_NO_CACHE=1 " FAKETIME_REAL_WAITS,
	         library, offset_file);
	own_server_start(&server, args);
	world_make(&world, &server.at);
	world_migrate(&world);
}

/* ---- one client ----------------------------------------------------------------- */

#define check(cond, b)                                                                             \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s: %s\n", __FILE__, __LINE__, #cond,      \
			        bizlock_errmsg(b));                                                \
			return false;                                                              \
		}                                                                                  \
	} while (0)

static bizlock_numbers numbers_now(bizlock *b)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	if (bizlock_stats(b, &n) != BIZLOCK_OK)
		die("stats: %s", bizlock_errmsg(b));
	return n;
}

static int take(bizlock *b, const char *id, int64_t wait_ms, bizlock_grant *ret)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.wait_ms = wait_ms;
	opts.lease_ms = LEASE_MS;
	return bizlock_acquire(b, KEY(id), &opts, ret);
}

/* Several holds, because they are renewed together. */
#define HOLDS 3
static const char *const ids[HOLDS] = {"k", "k-1", "k-2"};

static bool take_all(bizlock *b, uint64_t *fence)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (int i = 0; i < HOLDS; i++) {
		check(take(b, ids[i], PATIENCE_MS, &grant) == BIZLOCK_OK, b);
		check(grant.fence > *fence, b);
		*fence = grant.fence;
	}
	return true;
}

/* The next renewal tells the holder of the loss, and that the clock was the cause. Only a client
 * that has seen the server's time before can know that. */
static bool forward_is_told(bizlock *b, const struct losses *losses)
{
	int64_t start;

	eventually(numbers_now(b).renewals > 0);
	start = now_ms();
	step_to(HOUR_S);
	eventually(losses->count == HOLDS);
	for (int i = 0; i < HOLDS; i++) {
		check(losses->list[i].at - start <= IGNORANT_MS, b);
		check(bizlock_left_ms(b, KEY(ids[i]), NULL) <= 0, b);
		check(bizlock_verify(b, KEY(ids[i]), NULL) == BIZLOCK_LOST, b);
		check(strstr(bizlock_errmsg(b), "clock"), b);
		check(bizlock_release(b, KEY(ids[i]), NULL, NULL) == BIZLOCK_LOST, b);
	}
	check(numbers_now(b).clock_steps == 1, b);
	return true;
}

/* Nothing is lost. Others may have to wait for longer, but the holder itself believes in no more
 * than its lease. */
static bool back_is_borne(bizlock *b, const struct losses *losses)
{
	step_to(0);
	for (int i = 0; i < HOLDS; i++)
		check(bizlock_left_ms(b, KEY(ids[i]), NULL) <= LEASE_MS, b);
	eventually(numbers_now(b).clock_steps == 2);
	for (int i = 0; i < HOLDS; i++) {
		check(row_of(&world, KEY(ids[i])).left_us <= (HOUR_S * 1000LL + LEASE_MS) * 1000,
		      b);
		check(bizlock_verify(b, KEY(ids[i]), NULL) == BIZLOCK_OK, b);
		check(bizlock_left_ms(b, KEY(ids[i]), NULL) > 0, b);
		check(bizlock_release(b, KEY(ids[i]), NULL, NULL) == BIZLOCK_OK, b);
	}
	check(losses->count == HOLDS, b);
	check(numbers_now(b).clock_steps == 2, b);
	return true;
}

static bool one_client(void)
{
	static struct losses losses;
	bizlock *b = client_open(&world, NULL);
	uint64_t fence = 0;
	bool good;

	losses_watch(&losses, b);
	good = take_all(b, &fence) && forward_is_told(b, &losses) && take_all(b, &fence) &&
	       back_is_borne(b, &losses);
	bizlock_close(b);
	printf("one client is told, and counts the steps: %s\n", good ? "good" : "BAD");
	fflush(stdout);
	return good;
}

/* A step forward saves the test from waiting for that time. */
static bool is_free_in_time(bizlock *b, struct peer *holder)
{
	struct answer held = peer_acquire(holder, "dead", .lease_ms = LEASE_MS, .renewed = true);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	check(held.rc == BIZLOCK_OK, b);
	peer_signal(holder, SIGKILL);
	step_to(0);
	check(take(b, "dead", LEASE_MS + 1000, NULL) == BIZLOCK_TIMEOUT, b);
	step_to(HOUR_S);
	check(take(b, "dead", LEASE_MS + SLACK_MS, &grant) == BIZLOCK_OK, b);
	check(grant.flags == BIZLOCK_TOOK_OVER && grant.fence > held.grant.fence, b);
	check(bizlock_release(b, KEY("dead"), NULL, NULL) == BIZLOCK_OK, b);
	return true;
}

/* The lock of a dead holder stays locked for the step and a lease, not longer. */
static bool dead_holder(void)
{
	struct peer holder;
	bizlock *b;
	bool good;

	step_to(HOUR_S);
	holder = peer_start(&world, NULL);
	b = client_open(&world, NULL);
	good = is_free_in_time(b, &holder);
	peer_end(&holder);
	bizlock_close(b);
	step_to(0);
	printf("a dead holder, and a step back: %s\n", good ? "good" : "BAD");
	fflush(stdout);
	return good;
}

/* ---- a crowd --------------------------------------------------------------------- */

static void add(struct crowd_tale *sum, const struct crowd_tale *t)
{
	sum->acquired += t->acquired;
	sum->lost += t->lost;
	sum->overlaps += t->overlaps;
	sum->backward += t->backward;
	sum->steps += t->steps;
	sum->errors += t->errors;
	sum->overlap_us = t->overlap_us > sum->overlap_us ? t->overlap_us : sum->overlap_us;
	sum->gap_us = t->gap_us > sum->gap_us ? t->gap_us : sum->gap_us;
}

/* A step forward costs every process at least the key of its own; a step back costs nothing. Each
 * client notices the step once. */
static bool is_right(const struct crowd_tale *t, bool forward)
{
	if (t->backward || t->errors || t->steps != plan.processes)
		return false;
	return forward ? t->lost >= plan.processes && t->overlap_us <= IGNORANT_MS * 1000LL
	               : !t->lost && !t->overlaps;
}

static bool is_suffered(struct crowd *crowd, bool forward)
{
	if (crowd_goes_on(crowd, RECOVERY_MS) < 0 || !crowd_settles(crowd, RECOVERY_MS))
		return false;
	step_to(forward ? HOUR_S : 0);
	return crowd_goes_on(crowd, RECOVERY_MS) >= 0 &&
	       crowd_notices(crowd, plan.processes, RECOVERY_MS);
}

static bool suffer_a_step(struct crowd *crowd, bool forward, struct crowd_tale *sum)
{
	struct crowd_tale tale;
	bool good = is_suffered(crowd, forward);

	if (!good)
		fprintf(stderr, "a key was not acquired, or the step not noticed, for %d ms\n",
		        RECOVERY_MS);
	crowd_pause(crowd);
	good = crowd_leaves_nothing(&plan, &world, LEASE_MS + 3000) && good;
	tale = crowd_tell(crowd);
	good = is_right(&tale, forward) && good;
	add(sum, &tale);
	crowd_resume(crowd);
	return good;
}

static void print_row(const char *step, unsigned times, const struct crowd_tale *t, bool good)
{
	printf("%-14s %5u %8lu %6lu %6lu %7.1f %8u %10.1f %8u %6u  %s\n", step, times, t->acquired,
	       t->lost, t->steps, (double)t->gap_us / 1e6, t->overlaps, (double)t->overlap_us / 1e6,
	       t->backward, t->errors, good ? "good" : "BAD");
}

static bool a_crowd(unsigned times)
{
	struct crowd *crowd = crowd_start(&world, &plan, NULL);
	struct crowd_tale forward = {0}, back = {0};
	bool good_forward = true, good_back = true;

	printf("%u processes, %u keys and one of each process, lease %u ms, seed %u\n",
	       plan.processes, plan.keys, plan.lease_ms, plan.seed);
	for (unsigned i = 0; i < times && good_forward && good_back; i++) {
		good_forward = suffer_a_step(crowd, true, &forward);
		good_back = suffer_a_step(crowd, false, &back);
	}
	printf("%-14s %5s %8s %6s %6s %7s %8s %10s %8s %6s  %s\n", "step", "times", "acquired",
	       "LOST", "seen", "gap, s", "overlaps", "longest, s", "backward", "errors", "verdict");
	print_row("an hour ahead", times, &forward, good_forward);
	print_row("an hour back", times, &back, good_back);
	fflush(stdout);
	return crowd_end(crowd) && good_forward && good_back;
}

int main(int argc, char **argv)
{
	const char *is_long = getenv("BIZLOCK_FAULT_LONG");
	unsigned times = is_long && strcmp(is_long, "1") == 0 ? 20 : 1;
	char library[256];
	bool good;

	if (!own_server_possible() || !faketime_library(library, sizeof(library))) {
		puts(own_server_possible() ? "no libfaketime" : "no BIZLOCK_SERVER_SH");
		return 77;
	}
	if (getrandom(&plan.seed, sizeof(plan.seed), 0) != sizeof(plan.seed))
		die("getrandom failed");
	if (argc > 1)
		times = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		plan.seed = (unsigned)strtoul(argv[2], NULL, 10);
	start_server(library);
	good = one_client();
	good = dead_holder() && good;
	good = a_crowd(times) && good;
	world_drop(&world);
	own_server_end(&server);
	unlink(offset_file);
	return good ? 0 : 1;
}
