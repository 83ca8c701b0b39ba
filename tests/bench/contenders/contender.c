#define _GNU_SOURCE 1
#include "contender.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

static const struct contender *const all[] = {
        &contender_bizlock,      &contender_floor,    &contender_limit,
        &contender_textbook,     &contender_get_lock,
#ifdef BENCH_REDIS
        &contender_redis_always, &contender_redis,
#endif
#ifdef BENCH_ETCD
        &contender_etcd,
#endif
#ifdef BENCH_ZOOKEEPER
        &contender_zookeeper,
#endif
};

const struct contender *contender_find(const char *name)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

void contender_idle(void)
{
}

void contender_idle_begin(unsigned lanes)
{
	(void)lanes;
}

unsigned contender_port(const char *name)
{
	char variable[64];
	const char *port;

	snprintf(variable, sizeof(variable), "BIZLOCK_BENCH_%s", name);
	port = getenv(variable);
	if (!port)
		die("%s is not set; tests/bench/run.sh does that", variable);
	return (unsigned)strtoul(port, NULL, 10);
}
