/* What held locks cost the process that holds them: memory and connections. A line of
 * JSON for each number of locks, in growing order.
 *
 *     footprint LOCKS... */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/many.h"
#include "contenders/mysql.h"
#include "patience.h"

static long resident_kb(void)
{
	FILE *in = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (!in || fscanf(in, "%*d %ld", &pages) != 1)
		die("no /proc/self/statm");
	fclose(in);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static long long connections(void)
{
	return db_number(bench_world.admin,
	                 "SELECT COUNT(*) - 1 FROM information_schema.PROCESSLIST WHERE DB = '%s'",
	                 bench_world.schema);
}

static void measure(unsigned locks)
{
	bizlock *b = client_open(&bench_world, NULL);
	long before = resident_kb();

	many_acquire(b, locks, 0);
	printf("{\"work\":\"footprint\",\"locks\":%u,\"open_kb\":%ld,\"held_kb\":%ld,"
	       "\"connections\":%lld}\n",
	       locks, before, resident_kb(), connections());
	many_release(b, locks);
	bizlock_close(b);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		die("usage: footprint LOCKS...");
	bench_mysql_set_up();
	for (int i = 1; i < argc; i++)
		measure((unsigned)strtoul(argv[i], NULL, 10));
	bench_mysql_tear_down();
	return 0;
}
