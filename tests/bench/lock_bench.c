/* One contender, one kind of work, one measurement; a line of JSON.
 *
 *     lock_bench CONTENDER own|one LANES MS [HOLD_US [processes]]
 *     lock_bench CONTENDER rest LANES MS
 *
 * own: each lane its own key. one: all lanes the same; each holds it for HOLD_US.
 * rest: one lane holds for MS while LANES others wait. A lane is a thread, or with
 * "processes" a process. Where the servers are: see tests/bench/run.sh. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/lanes.h"
#include "patience.h"

static void print_head(const struct lanes_plan *plan, const char *work)
{
	printf("{\"contender\":\"%s\",\"work\":\"%s\",\"lanes\":%u,\"processes\":%s,"
	       "\"hold_us\":%u,\"ms\":%u,",
	       plan->contender->name, work, plan->lanes, plan->processes ? "true" : "false",
	       plan->hold_us, plan->ms);
}

static void run(const struct lanes_plan *plan, const char *work)
{
	static struct lanes_tale tale;

	lanes_run(plan, &tale);
	print_head(plan, work);
	printf("\"pairs\":%llu,\"pairs_s\":%.1f,", (unsigned long long)tale.pairs,
	       (double)tale.pairs / tale.seconds);
	hist_print(stdout, "pair_us", &tale.pair);
	fputc(',', stdout);
	hist_print(stdout, "acquire_us", &tale.acquire);
	fputc(',', stdout);
	hist_print(stdout, "handover_us", &tale.handover);
	printf(",\"least\":%llu,\"most\":%llu,\"to_itself\":%llu,\"longest_wait_ms\":%.3f,"
	       "\"server_cpu_ms\":%lld,\"client_cpu_ms\":%lld,\"requests\":%lld}\n",
	       (unsigned long long)tale.least, (unsigned long long)tale.most,
	       (unsigned long long)tale.to_itself, (double)tale.longest_ns / 1e6,
	       (long long)tale.server_cpu_ms, (long long)tale.own_cpu_ms, tale.requests);
}

static void rest(struct lanes_plan *plan)
{
	struct lanes_rest tale;

	plan->lanes++;
	lanes_rest(plan, &tale);
	plan->lanes--;
	print_head(plan, "rest");
	printf("\"requests\":%lld,\"server_cpu_ms\":%lld,\"client_cpu_ms\":%lld}\n", tale.requests,
	       (long long)tale.server_cpu_ms, (long long)tale.own_cpu_ms);
}

static unsigned number(const char *text)
{
	return text ? (unsigned)strtoul(text, NULL, 10) : 0;
}

int main(int argc, char **argv)
{
	const char *work = argc > 4 ? argv[2] : "";
	struct lanes_plan plan = {
	        .contender = argc > 4 ? contender_find(argv[1]) : NULL,
	        .lanes = argc > 4 ? number(argv[3]) : 0,
	        .ms = argc > 4 ? number(argv[4]) : 0,
	        .hold_us = argc > 5 ? number(argv[5]) : 0,
	        .processes = argc > 6 && strcmp(argv[6], "processes") == 0,
	        .one_key = strcmp(work, "own") != 0,
	};

	if (argc > 1 && !plan.contender)
		die("lock_bench: no such contender: %s", argv[1]);
	if (!plan.lanes || plan.lanes >= LANES_MAX || !plan.ms)
		die("usage: lock_bench CONTENDER own|one|rest LANES MS [HOLD_US [processes]]");
	if (plan.one_key && !plan.contender->wakes)
		die("lock_bench: %s has no way to wait", plan.contender->name);
	plan.contender->set_up();
	if (strcmp(work, "rest") == 0)
		rest(&plan);
	else
		run(&plan, work);
	plan.contender->tear_down();
	return 0;
}
