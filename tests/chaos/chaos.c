/* Twelve processes take locks at a cluster of three servers that is being broken: Galera where
 * MariaDB is, a group of MySQL where MySQL is. What they saw is written down, and judged when it is
 * over.
 *
 *     chaos [--three] [--several] [--seconds N] [--seed N]
 *
 * --three     a kill, a freeze of 20 s, and a switch of the primary where there is one. Otherwise
 *             faults are drawn at random
 * --several   a group in which each node is a primary
 * --seconds   60, or BIZLOCK_CHAOS_SECONDS of random faults; the last fault may
 *             take longer
 * --seed      repeats the faults of that run, in their order */
#define _GNU_SOURCE 1
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin.h"
#include "base/rnd.h"
#include "check.h"
#include "clients.h"
#include "faults.h"
#include "patience.h"
#include "report.h"
#include "routines.h"

#define FAULTS_MAX 4000
/* What a cluster may need to go on without a node, cluster.sh says. */
#define FAILOVER_S 30
#define LONG_S 600       /* a run that has time for a full disk */
#define UNBROKEN_MS 3000 /* before the first fault */
#define PASSWORD "bizlock-test"

static const struct chaos_bounds bounds = {
        .acquire_us = 3000000,
        .release_us = 36000000, /* of the client's options: connect_timeout_ms, and io_timeout_ms
                                   three times, where there are several hosts */
        .told_us = 1000000,
        .stuck_us = CHAOS_LEASE_MS * 1000 + FAILOVER_S * 1000000,
        .away_us = 2 * CHAOS_LEASE_MS * 1000,
};

static const struct chaos_plan three[] = {
        {.kind = CHAOS_KILL, .node = -1, .for_ms = 5000, .then_ms = 3000},
        {.kind = CHAOS_FREEZE, .node = -1, .for_ms = 20000, .then_ms = 3000},
        {.kind = CHAOS_SWITCH, .node = 2, .then_ms = 10000},
};

struct options {
	bool three, several;
	bool apart; /* the nodes have networks and disks of their own */
	unsigned seconds;
	uint64_t seed;
};

static struct chaos_site site;
static struct chaos_fault faults[FAULTS_MAX];

/* ---- the place ------------------------------------------------------------------- */

/* An ordinary user has no privileges that a lock needs and a tester has forgotten to give. */
static struct world make_world(void)
{
	struct world w;

	world_make(&w, &site.cluster.nodes[0]);
	world_migrate_routines(&w);
	db_run(w.admin,
	       "CREATE USER chaos@'%%' IDENTIFIED BY '" PASSWORD "';"
	       "GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON `%s`.* TO chaos@'%%'",
	       w.schema);
	mysql_close(w.admin);
	w.admin = NULL;
	w.at = proxy_address(site.proxies[0]);
	snprintf(w.at.user, sizeof(w.at.user), "chaos");
	w.at.password[0] = '\0'; /* the option file has it */
	snprintf(site.schema, sizeof(site.schema), "%s", w.schema);
	snprintf(site.option_file, sizeof(site.option_file), "%s/clients.cnf", site.cluster.dir);
	chaos_write_password(&site, PASSWORD);
	return w;
}

/* By TCP: on a socket MySQL expects the password in other words than those of clients that see a
 * TCP connection. All have all nodes in their lists. Where each is a primary, each third of the
 * clients begins with another. */
static void go(struct chaos_clients *clients)
{
	char lists[3][256];
	const char *hosts[3] = {lists[0], lists[1], lists[2]};
	unsigned ports[CLUSTER_NODES];
	struct world w;

	for (unsigned i = 0; i < CLUSTER_NODES; i++) {
		const struct server *node = &site.cluster.nodes[i];
		struct server at = server_over_tcp(*node, node->host, node->port);

		site.proxies[i] = proxy_start(&at, "127.0.0.1");
		ports[i] = proxy_address(site.proxies[i]).port;
	}
	for (unsigned i = 0; i < 3; i++) {
		unsigned first = site.cluster.has_one_primary ? 0 : i;

		snprintf(lists[i], sizeof(lists[i]), "127.0.0.1:%u,127.0.0.1:%u,127.0.0.1:%u",
		         ports[first], ports[(first + 1) % 3], ports[(first + 2) % 3]);
	}
	w = make_world();
	chaos_clients_go(clients, &w, hosts, site.option_file, &site.cluster.nodes[0],
	                 site.cluster.has_one_primary);
}

/* ---- one after the other ------------------------------------------------------------ */

static const struct chaos_plan *next_fault(const struct options *o, unsigned number,
                                           struct chaos_plan *ret)
{
	unsigned all = sizeof(three) / sizeof(three[0]) - !site.cluster.has_one_primary;

	if (o->three)
		return number < all ? &three[number] : NULL;
	*ret = chaos_draw(o->seed, number, &site.cluster, o->seconds >= LONG_S);
	return ret;
}

/* A fault is told of when the next one is over: then it can be said when keys were granted again.
 */
static void tell_of(const struct chaos_clients *clients, unsigned fault, int64_t since_us)
{
	struct chaos_history h = chaos_clients_history(clients);

	chaos_report_fault(&h, &faults[fault], since_us);
}

static bool all_granted_since(const struct chaos_clients *clients, int64_t us)
{
	struct chaos_history h = chaos_clients_history(clients);
	bool granted[CHAOS_KEYS] = {false};
	unsigned n = 0;

	for (size_t i = 0; i < h.n_holds; i++)
		granted[h.holds[i].key] |= h.holds[i].from_us > us;
	for (unsigned key = 0; key < CHAOS_KEYS; key++)
		n += granted[key];
	return n == CHAOS_KEYS;
}

/* A cluster whose members are well may not have served its clients again. A fault that came sooner
 * would be a second one at the same time, and no majority be left. */
static void await_grants(const struct chaos_clients *clients, int64_t since_us)
{
	int64_t end = now_ms() + bounds.stuck_us / 1000;

	while (!all_granted_since(clients, since_us) && now_ms() < end)
		pause_ms(100);
}

/* Returns how many faults there were. */
static unsigned suffer(const struct options *o, const struct chaos_clients *clients,
                       int64_t since_us, bool *ret_healed)
{
	int64_t end = now_ms() + (int64_t)o->seconds * 1000;
	const struct chaos_plan *plan;
	struct chaos_plan drawn;
	unsigned n = 0;

	*ret_healed = true;
	pause_ms(UNBROKEN_MS);
	while (*ret_healed && n < FAULTS_MAX && (o->three || now_ms() < end) &&
	       (plan = next_fault(o, n, &drawn)) != NULL) {
		*ret_healed = chaos_inject(&site, plan, &faults[n]);
		await_grants(clients, faults[n].mended_us);
		if (n++ > 0)
			tell_of(clients, n - 2, since_us);
	}
	while (o->three && pause_before(end))
		;
	return n;
}

static bool run(const struct options *o, struct chaos_clients *clients)
{
	char args[32];
	struct chaos_history h;
	struct chaos_verdict verdict;
	int64_t since_us;
	bool healed, ended, good;
	unsigned n;

	snprintf(args, sizeof(args), "%s %s", o->several ? "--several" : "",
	         o->apart ? "--apart" : "");
	cluster_start(&site.cluster, args);
	go(clients);
	since_us = chaos_now_us();
	n = suffer(o, clients, since_us, &healed);
	ended = chaos_clients_end(clients, CHAOS_WAIT_MS + 20000);
	if (n > 0)
		tell_of(clients, n - 1, since_us);
	h = chaos_clients_history(clients);
	h.faults = faults;
	h.n_faults = n;
	h.end_us = chaos_now_us();
	verdict = chaos_check(&h, &bounds);
	chaos_report(&h);
	good = chaos_report_verdict(&verdict, &h, clients, since_us) && healed && ended;
	printf("seed %" PRIu64 ": %s%s%s\n", o->seed, good ? "good" : "BAD",
	       healed ? "" : ", the cluster did not heal",
	       ended ? "" : ", a client did not end well");
	if (!healed)
		cluster_show(&site.cluster);
	return good;
}

static bool read_options(int argc, char **argv, struct options *ret)
{
	static const struct option names[] = {{"three", no_argument, NULL, 't'},
	                                      {"several", no_argument, NULL, 'p'},
	                                      {"seconds", required_argument, NULL, 's'},
	                                      {"seed", required_argument, NULL, 'e'},
	                                      {NULL, 0, NULL, 0}};
	const char *random_seconds = getenv("BIZLOCK_CHAOS_SECONDS");
	int c;

	*ret = (struct options){.seconds = 0};
	bl_random_bytes(&ret->seed, 4);
	while ((c = getopt_long(argc, argv, "", names, NULL)) >= 0)
		switch (c) {
		case 't':
			ret->three = true;
			break;
		case 'p':
			ret->several = true;
			break;
		case 's':
			ret->seconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'e':
			ret->seed = strtoull(optarg, NULL, 10);
			break;
		default:
			return false;
		}
	if (!ret->seconds && !ret->three && random_seconds)
		ret->seconds = (unsigned)strtoul(random_seconds, NULL, 10);
	if (!ret->seconds)
		ret->seconds = 60;
	return optind == argc;
}

int main(int argc, char **argv)
{
	struct chaos_clients *clients;
	struct options options;
	bool good;

	if (!read_options(argc, argv, &options))
		die("usage: chaos [--three] [--several] [--seconds N] [--seed N]");
	if (!cluster_possible()) {
		puts("no cluster: no BIZLOCK_SERVER_SH, or Galera is not installed");
		return 77;
	}
	if (options.several && !cluster_is_group()) {
		puts("not here: each node of Galera is a primary anyway");
		return 77;
	}
	printf("seed %" PRIu64 ", %u processes, %u keys, lease %u ms, wait %u ms\n", options.seed,
	       CHAOS_PROCESSES, CHAOS_KEYS, CHAOS_LEASE_MS, CHAOS_WAIT_MS);
	options.apart = cluster_set_apart();
	if (!options.apart)
		puts("not root, or no `ip`: neither parted nodes nor full disks");
	fflush(stdout);
	/* Before there are threads: those of the proxies. */
	clients = chaos_clients_fork((unsigned)options.seed);
	good = run(&options, clients);
	for (unsigned i = 0; i < CLUSTER_NODES; i++)
		proxy_stop(site.proxies[i]);
	cluster_end(&site.cluster);
	return good ? 0 : 1;
}
