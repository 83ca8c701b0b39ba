/* The server is killed, stopped, shut down, and cuts its clients off, again and
 * again, while a crowd takes locks on it: nobody ever holds what somebody else
 * believes to hold, fences grow, clients answer what the manual says, and soon
 * after each fault every key changes hands again.
 *
 *     server_faults [TIMES [SEED]]
 *
 * TIMES: of each fault; 3, or 20 where BIZLOCK_FAULT_LONG=1. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "crowd.h"
#include "own_server.h"
#include "patience.h"

#define LEASE_MS 2000
/* From the moment when the server answers again until every key was given to somebody. In this time
 * old leases run out, a long hold ends, and threads that wait for a connection get one. */
#define RECOVERY_MS (LEASE_MS + 8000)
#define IN_LINE 8 /* connections that wait at a doorbell before a fault */

static struct own_server server;
static struct world world;
static struct crowd_plan plan = {.processes = 24,
                                 .keys = 4,
                                 .lease_ms = LEASE_MS,
                                 .wait_ms = 4000,
                                 .long_in = 32,
                                 .long_hold_ms = 3000};

/* The server keeps its address. The administrator's connection has to be made anew. */
static void start_again(void)
{
	own_server_do(&server, "restart");
	mysql_close(world.admin);
	world.admin = db_open(&world.at, world.schema);
}

static void kill_and_restart(unsigned *random)
{
	(void)random;
	own_server_do(&server, "kill");
	start_again();
}

static void stop_for_longer_than_the_lease(unsigned *random)
{
	own_server_do(&server, "freeze");
	pause_ms(LEASE_MS + 500 + (unsigned)rand_r(random) % 1500);
	own_server_do(&server, "thaw");
}

static void shut_down_and_start(unsigned *random)
{
	(void)random;
	own_server_do(&server, "stop");
	start_again();
}

/* Ends each connection with the same chance, whatever it does. */
static void kill_connections(unsigned *random)
{
	char *ids = db_text(world.admin,
	                    "SELECT ID FROM information_schema.PROCESSLIST"
	                    " WHERE DB = '%s' AND ID <> CONNECTION_ID()",
	                    world.schema);
	char *rest;

	for (char *id = strtok_r(ids, "\n", &rest); id; id = strtok_r(NULL, "\n", &rest))
		if (rand_r(random) % 2)
			db_try(world.admin, "KILL %s", id); /* the connection may have ended */
	free(ids);
}

static const struct fault {
	const char *name;
	void (*inject)(unsigned *random);
} faults[] = {
        {"SIGKILL, restart", kill_and_restart},
        {"SIGSTOP past the lease", stop_for_longer_than_the_lease},
        {"shutdown, start", shut_down_and_start},
        {"KILL of connections", kill_connections},
};

/* ---- one after the other ------------------------------------------------------- */

static bool goes_on(struct crowd *crowd, const char *when)
{
	if (crowd_goes_on(crowd, RECOVERY_MS) >= 0)
		return true;
	fprintf(stderr, "%s: a key was not acquired for %d ms\n", when, RECOVERY_MS);
	return false;
}

static void print_row(const struct fault *fault, unsigned times, const struct crowd_tale *t,
                      bool good)
{
	printf("%-24s %5u %8lu %6lu %7lu %6lu %7lu %7.1f %8u %8u %6u  %s\n", fault->name, times,
	       t->acquired, t->lost, t->codes[BIZLOCK_UNKNOWN], t->codes[BIZLOCK_CONN],
	       t->codes[BIZLOCK_TIMEOUT], (double)t->gap_us / 1e6, t->overlaps, t->backward,
	       t->errors, good ? "good" : "BAD");
	fflush(stdout);
}

static bool suffer(struct crowd *crowd, const struct fault *fault, unsigned times, unsigned *random)
{
	struct crowd_tale tale;
	bool good = true;

	for (unsigned i = 0; i < times && good; i++) {
		good = goes_on(crowd, "before a fault");
		eventually(doorbell_waiters(&world) >= IN_LINE);
		fault->inject(random);
		good = goes_on(crowd, fault->name) && good;
	}
	crowd_pause(crowd);
	good = crowd_leaves_nothing(&plan, &world, LEASE_MS + 3000) && good;
	tale = crowd_tell(crowd);
	good = good && !tale.overlaps && !tale.backward && !tale.errors && tale.acquired > 0;
	print_row(fault, times, &tale, good);
	crowd_resume(crowd);
	return good;
}

static bool suffer_all(unsigned times)
{
	struct crowd *crowd = crowd_start(
	        &world, &plan, OPTIONS("io_timeout_ms", "1000", "connect_timeout_ms", "1000"));
	unsigned random = plan.seed;
	bool good = true;

	printf("%u processes, %u keys and one of each process, lease %u ms, seed %u\n",
	       plan.processes, plan.keys, plan.lease_ms, plan.seed);
	printf("%-24s %5s %8s %6s %7s %6s %7s %7s %8s %8s %6s  %s\n", "fault", "times", "acquired",
	       "LOST", "UNKNOWN", "CONN", "TIMEOUT", "gap, s", "overlaps", "backward", "errors",
	       "verdict");
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		good = suffer(crowd, &faults[i], times, &random) && good;
	return crowd_end(crowd) && good;
}

int main(int argc, char **argv)
{
	const char *is_long = getenv("BIZLOCK_FAULT_LONG");
	unsigned times = is_long && strcmp(is_long, "1") == 0 ? 20 : 3;
	bool good;

	if (!own_server_possible()) {
		puts("no BIZLOCK_SERVER_SH");
		return 77;
	}
	if (getrandom(&plan.seed, sizeof(plan.seed), 0) != sizeof(plan.seed))
		die("getrandom failed");
	if (argc > 1)
		times = (unsigned)strtoul(argv[1], NULL, 10);
	if (argc > 2)
		plan.seed = (unsigned)strtoul(argv[2], NULL, 10);
	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	good = suffer_all(times);
	world_drop(&world);
	own_server_end(&server);
	return good ? 0 : 1;
}
