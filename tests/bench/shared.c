/* Shared locks: one contender, one kind of work, one measurement; a line of JSON.
 *
 *     shared CONTENDER KIND LANES MS [N]
 *
 * share: all threads share one key, N of them at most at a time, or any number. mix: the same, and
 * N of 100 acquisitions are to have it alone. beside: all share it, and one more thread wants it
 * alone all the time. plain-own, plain-one: nobody shares, to compare: each thread has its own key,
 * or all have the same. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hist.h"
#include "common/meter.h"
#include "contenders/contender.h"
#include "patience.h"

#define WARM_NS (200 * (int64_t)1000000) /* all lanes run this long before turns are counted */
#define LANES_MAX 256
#define ALONE 1000u /* more than can share */

enum kind { SHARE, MIX, BESIDE, PLAIN_OWN, PLAIN_ONE, KINDS };

static const char *const kinds[KINDS] = {"share", "mix", "beside", "plain-own", "plain-one"};

struct lane {
	_Alignas(64) pthread_t thread;
	char key[24];
	bool alone;     /* wants to have it alone each time */
	uint64_t drawn; /* which of the others do is drawn */
	uint64_t pairs, pairs_alone;
	int64_t longest_alone; /* ns; one that the end cut short counts, too */
	struct hist acquire, acquire_alone;
};

static struct {
	const struct contender *contender;
	enum kind kind;
	unsigned lanes, ms, n;
	atomic_uint ready,
	        inside; /* inside: holders of the one key; one that has it alone is ALONE */
	atomic_bool go;
	_Atomic int64_t begin, end;
	struct lane lane[LANES_MAX];
} field;

static bool is_plain(void)
{
	return field.kind == PLAIN_OWN || field.kind == PLAIN_ONE;
}

static unsigned limit(void)
{
	return field.kind == SHARE && field.n ? field.n : ALONE;
}

/* ---- a turn -------------------------------------------------------------- */

static bool draw_alone(struct lane *lane)
{
	if (field.kind != MIX)
		return lane->alone;
	lane->drawn = lane->drawn * 6364136223846793005u + 1442695040888963407u;
	return (lane->drawn >> 33) % 100 < field.n;
}

static void enter(bool alone)
{
	unsigned before = atomic_fetch_add(&field.inside, alone ? ALONE : 1);

	if (alone ? before > 0 : before >= limit())
		die("%s: held by those that must not hold it together", field.contender->name);
}

static void leave(bool alone)
{
	atomic_fetch_sub(&field.inside, alone ? ALONE : 1);
}

static void acquire(void *session, bool alone)
{
	if (is_plain())
		field.contender->acquire(session);
	else
		field.contender->shared->acquire(session, alone);
	if (field.kind != PLAIN_OWN)
		enter(alone || is_plain());
}

static void release(void *session, bool alone)
{
	if (field.kind != PLAIN_OWN)
		leave(alone || is_plain());
	if (is_plain())
		field.contender->release(session);
	else
		field.contender->shared->release(session);
}

static void count_longest(struct lane *lane, int64_t from, int64_t got)
{
	int64_t to = got < field.end ? got : field.end;

	if (to - from > lane->longest_alone)
		lane->longest_alone = to - from;
}

static void count(struct lane *lane, bool alone, int64_t from, int64_t got)
{
	if (got < field.begin)
		return;
	if (alone)
		count_longest(lane, from, got);
	if (got >= field.end)
		return;
	*(alone ? &lane->pairs_alone : &lane->pairs) += 1;
	hist_add(alone ? &lane->acquire_alone : &lane->acquire, got - from);
}

static void take_turn(struct lane *lane, void *session)
{
	bool alone = draw_alone(lane);
	int64_t from = now_ns(), got;

	acquire(session, alone);
	got = now_ns();
	release(session, alone);
	count(lane, alone, from, got);
}

static void *run_lane(void *arg)
{
	struct lane *lane = arg;
	void *session = field.contender->open(lane->key);

	take_turn(lane, session);
	atomic_fetch_add(&field.ready, 1);
	while (!atomic_load(&field.go))
		pause_ms(1);
	while (now_ns() < field.end)
		take_turn(lane, session);
	field.contender->close(session);
	return NULL;
}

/* ---- all of them --------------------------------------------------------- */

static void start_lane(unsigned i)
{
	struct lane *lane = &field.lane[i];

	lane->drawn = i;
	lane->alone = field.kind == BESIDE && i + 1 == field.lanes;
	snprintf(lane->key, sizeof(lane->key), field.kind == PLAIN_OWN ? "own-%u" : "shared", i);
	if (pthread_create(&lane->thread, NULL, run_lane, lane) != 0)
		die("no thread");
}

static void start(void)
{
	field.begin = field.end = INT64_MAX;
	field.contender->begin(field.lanes);
	if (!is_plain())
		field.contender->shared->begin("shared", field.kind == SHARE ? field.n : 0);
	for (unsigned i = 0; i < field.lanes; i++)
		start_lane(i);
	eventually(atomic_load(&field.ready) == field.lanes);
	field.begin = now_ns() + WARM_NS;
	field.end = field.begin + field.ms * (int64_t)1000000;
	atomic_store(&field.go, true);
	sleep_until(field.begin);
}

static void add_up(struct lane *all, const struct lane *lane)
{
	all->pairs += lane->pairs;
	all->pairs_alone += lane->pairs_alone;
	if (lane->longest_alone > all->longest_alone)
		all->longest_alone = lane->longest_alone;
	hist_merge(&all->acquire, &lane->acquire);
	hist_merge(&all->acquire_alone, &lane->acquire_alone);
}

/* Adds all lanes to the first one. */
static const struct lane *join(void)
{
	struct lane *all = &field.lane[0];

	pthread_join(all->thread, NULL);
	for (unsigned i = 1; i < field.lanes; i++) {
		pthread_join(field.lane[i].thread, NULL);
		add_up(all, &field.lane[i]);
	}
	field.contender->end();
	return all;
}

static void print(const struct lane *all, int64_t server_ms, int64_t client_ms)
{
	uint64_t pairs = all->pairs + all->pairs_alone;

	printf("{\"contender\":\"%s\",\"work\":\"shared\",\"kind\":\"%s\",\"lanes\":%u,\"n\":%u,"
	       "\"ms\":%u,\"pairs\":%llu,\"alone\":%llu,\"pairs_s\":%.1f,",
	       field.contender->name, kinds[field.kind],
	       field.kind == BESIDE ? field.lanes - 1 : field.lanes, field.n, field.ms,
	       (unsigned long long)pairs, (unsigned long long)all->pairs_alone,
	       (double)pairs * 1000 / field.ms);
	hist_print(stdout, "acquire_us", &all->acquire);
	fputc(',', stdout);
	hist_print(stdout, "alone_us", &all->acquire_alone);
	printf(",\"longest_alone_ms\":%.3f,\"server_cpu_ms\":%lld,\"client_cpu_ms\":%lld}\n",
	       (double)all->longest_alone / 1e6, (long long)server_ms, (long long)client_ms);
}

static void run(void)
{
	int64_t server_ms, client_ms;

	start();
	server_ms = -server_cpu_ms();
	client_ms = -own_cpu_ms();
	sleep_until(field.end);
	server_ms += server_cpu_ms();
	client_ms += own_cpu_ms();
	print(join(), server_ms, client_ms);
}

/* ---- arguments ----------------------------------------------------------- */

static enum kind kind_of(const char *name)
{
	unsigned kind = 0;

	while (kind < KINDS && strcmp(kinds[kind], name) != 0)
		kind++;
	return (enum kind)kind;
}

static unsigned number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static void check(void)
{
	const struct contender_shared *s = field.contender->shared;

	if (is_plain())
		return;
	if (!s || (field.kind == SHARE && field.n ? !s->limits : !s->alone))
		die("shared: %s has no such lock", field.contender->name);
}

int main(int argc, char **argv)
{
	if (argc < 5 || argc > 6)
		die("usage: shared CONTENDER KIND LANES MS [N]");
	field.contender = contender_find(argv[1]);
	field.kind = kind_of(argv[2]);
	field.lanes = number(argv[3]);
	field.ms = number(argv[4]);
	field.n = argc > 5 ? number(argv[5]) : 0;
	if (!field.contender)
		die("shared: no such contender: %s", argv[1]);
	if (field.kind == KINDS || !field.lanes || field.lanes >= LANES_MAX || !field.ms)
		die("usage: shared CONTENDER share|mix|beside|plain-own|plain-one LANES MS [N]");
	check();
	field.lanes += field.kind == BESIDE;
	field.contender->set_up();
	run();
	field.contender->tear_down();
	return 0;
}
