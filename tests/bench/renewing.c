/* What it costs to keep many locks: statements and processor time. A line of JSON.
 *
 *     renewing LOCKS LEASE_MS
 *
 * Two thirds of a lease are measured, from the middle between two renewals: so that
 * is two renewals of each lock. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>

#include "common/many.h"
#include "common/meter.h"
#include "contenders/mysql.h"
#include "patience.h"

static uint64_t renewals(bizlock *b)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	if (bizlock_stats(b, &n) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(b));
	if (n.lost)
		die("%llu locks were lost", (unsigned long long)n.lost);
	return n.renewals;
}

static void measure(bizlock *b, unsigned locks, unsigned lease_ms)
{
	unsigned ms = lease_ms / 3 * 2;
	long long statements;
	int64_t server, own;
	uint64_t renewed;

	eventually(renewals(b) >= locks);
	pause_ms(lease_ms / 6);
	statements = bench_mysql_requests();
	server = server_cpu_ms();
	own = own_cpu_ms();
	renewed = renewals(b);
	pause_ms(ms);
	printf("{\"work\":\"renewing\",\"locks\":%u,\"lease_ms\":%u,\"ms\":%u,\"renewals\":%llu,",
	       locks, lease_ms, ms, (unsigned long long)(renewals(b) - renewed));
	own = own_cpu_ms() - own;
	server = server_cpu_ms() - server;
	statements = bench_mysql_requests() - statements - 1;
	printf("\"statements\":%lld,\"server_cpu_ms\":%lld,\"client_cpu_ms\":%lld}\n", statements,
	       (long long)server, (long long)own);
}

int main(int argc, char **argv)
{
	unsigned locks = argc > 2 ? (unsigned)strtoul(argv[1], NULL, 10) : 0;
	unsigned lease_ms = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 0;
	bizlock *b;

	if (!locks || !lease_ms)
		die("usage: renewing LOCKS LEASE_MS");
	bench_mysql_set_up();
	b = client_open(&bench_world, NULL);
	many_acquire(b, locks, lease_ms);
	measure(b, locks, lease_ms);
	many_release(b, locks);
	bizlock_close(b);
	bench_mysql_tear_down();
	return 0;
}
