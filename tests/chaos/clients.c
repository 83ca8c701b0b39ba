#define _GNU_SOURCE 1
#include "clients.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "caller.h"
#include "check.h"
#include "patience.h"

/* For hours; on 32 bits, where there is no room, for minutes. */
#define HOLDS_MAX (SIZE_MAX > UINT32_MAX ? 20000000u : 2000000u)
#define CALLS_MAX (2 * HOLDS_MAX)
#define ERRORS_MAX 1000u
#define LOOK_MS 5 /* from one look at a hold to the next */
#define HELPERS 2 /* the application and the reaper */

/* Shared by all processes. What is not used takes no memory. */
struct chaos_clients {
	unsigned seed;
	pid_t pids[CHAOS_PROCESSES + HELPERS];
	struct world world;
	struct server app;
	char hosts[3][256], option_file[300];
	bool with_callers;
	atomic_bool go, stop;
	atomic_uint ready;
	atomic_uint n_calls, n_holds, n_errors;
	struct chaos_error errors[ERRORS_MAX];
	struct chaos_hold holds[HOLDS_MAX];
	struct chaos_call calls[CALLS_MAX];
};

int64_t chaos_now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* ---- a process ------------------------------------------------------------- */

struct member {
	struct chaos_clients *c;
	bizlock *b;            /* or */
	struct caller *caller; /* a program without the library */
	unsigned number, random;
	struct chaos_hold *_Atomic hold; /* NULL: none. The function of losses looks at it. */
};

static bizlock_key key_of(unsigned key)
{
	static const char *const ids[CHAOS_KEYS] = {"key-0", "key-1", "key-2", "key-3"};

	return KEY(ids[key]);
}

static struct chaos_call *begin_call(struct member *m, enum chaos_what what, unsigned key)
{
	unsigned at = atomic_fetch_add(&m->c->n_calls, 1);
	struct chaos_call *call = &m->c->calls[at];

	if (at >= CALLS_MAX)
		die("more calls than there is room for");
	call->process = (uint16_t)m->number;
	call->what = (uint8_t)what;
	call->key = (uint16_t)key;
	call->wait_ms = what == CHAOS_ACQUIRE ? CHAOS_WAIT_MS : 0;
	call->begun_us = chaos_now_us();
	return call;
}

static void end_call(struct member *m, struct chaos_call *call, int rc)
{
	unsigned at;

	call->rc = (uint8_t)rc;
	call->ended_us = chaos_now_us();
	if (chaos_is_excused(call->what, rc) ||
	    (at = atomic_fetch_add(&m->c->n_errors, 1)) >= ERRORS_MAX)
		return;
	m->c->errors[at] = (struct chaos_error){.at_us = call->ended_us,
	                                        .process = call->process,
	                                        .what = call->what,
	                                        .rc = call->rc};
	snprintf(m->c->errors[at].text, sizeof(m->c->errors[at].text), "%s",
	         m->b ? bizlock_errmsg(m->b) : "by CALL");
}

static void hear_of_loss(void *arg, bizlock_key key, uint64_t fence)
{
	struct member *m = arg;
	struct chaos_hold *hold = atomic_load(&m->hold);

	(void)key;
	if (hold && hold->fence == fence)
		hold->told_us = chaos_now_us();
}

/* Two keys are had alone, one is shared by any number, and one by two at most. Routines share
 * none. */
static void choose_mode(struct member *m, unsigned key, bizlock_acquire_opts *opts)
{
	bool alone = rand_r(&m->random) % 4 == 0;

	if (key < 2 || m->caller)
		return;
	opts->flags = alone ? 0 : BIZLOCK_SHARED;
	opts->limit = key == 2 || alone ? 0 : 2;
}

static uint32_t limit_of(const bizlock_acquire_opts *opts)
{
	if (!(opts->flags & BIZLOCK_SHARED))
		return 0;
	return opts->limit ? opts->limit : CHAOS_ANY;
}

static struct chaos_hold *take(struct member *m, unsigned key)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct chaos_call *call = begin_call(m, CHAOS_ACQUIRE, key);
	struct chaos_hold *hold;
	unsigned at;
	int rc;

	opts.wait_ms = CHAOS_WAIT_MS;
	opts.lease_ms = CHAOS_LEASE_MS;
	choose_mode(m, key, &opts);
	rc = m->caller ? caller_take(m->caller, key_of(key), CHAOS_LEASE_MS, CHAOS_WAIT_MS,
	                             &grant.fence)
	               : bizlock_acquire(m->b, key_of(key), &opts, &grant);
	end_call(m, call, rc);
	if (rc != BIZLOCK_OK)
		return NULL;
	if ((at = atomic_fetch_add(&m->c->n_holds, 1)) >= HOLDS_MAX)
		die("more holds than there is room for");
	hold = &m->c->holds[at];
	*hold = (struct chaos_hold){.fence = grant.fence,
	                            .asked_us = call->begun_us,
	                            .from_us = call->ended_us,
	                            .limit = limit_of(&opts),
	                            .by_call = m->caller != NULL,
	                            .process = (uint16_t)m->number,
	                            .key = (uint16_t)key};
	atomic_store(&m->hold, hold);
	return hold;
}

static bool believe(struct member *m, struct chaos_hold *hold)
{
	int64_t now = chaos_now_us();
	int64_t left = m->caller ? caller_left_ms(m->caller)
	                         : bizlock_left_ms(m->b, key_of(hold->key), NULL);

	if (left <= 0) {
		hold->over_us = chaos_now_us();
		hold->told_us = m->caller ? hold->over_us : hold->told_us;
		return false;
	}
	hold->until_us = now;
	hold->ends_us = now + left * 1000;
	return true;
}

/* Most holds are as short as can be, and some outlive a lease. Whoever finds that a hold is over
 * gives the library a while to say so. */
static void hold_for_a_while(struct member *m, struct chaos_hold *hold)
{
	int64_t end = now_ms();

	if (rand_r(&m->random) % 4 == 0)
		end += rand_r(&m->random) % (rand_r(&m->random) % 64 ? 50 : CHAOS_LEASE_MS * 3 / 2);
	while (believe(m, hold) && now_ms() < end && !atomic_load(&m->c->stop))
		pause_ms(LOOK_MS);
	for (end = now_ms() + 2000; hold->over_us && !hold->told_us && pause_before(end);)
		;
}

static void give_back(struct member *m, struct chaos_hold *hold)
{
	struct chaos_call *call = begin_call(m, CHAOS_RELEASE, hold->key);
	int rc;

	hold->given_us = call->begun_us;
	rc = m->caller ? caller_release(m->caller)
	               : bizlock_release(m->b, key_of(hold->key), NULL, NULL);
	hold->rc = (uint8_t)rc;
	end_call(m, call, rc);
	hold->answered_us = call->ended_us;
	atomic_store(&m->hold, NULL);
}

static void begin(struct member *m)
{
	const struct chaos_clients *c = m->c;
	const char *hosts = c->hosts[m->number % 3];

	if (c->with_callers && m->number % 2 == 1) {
		m->caller = caller_new(hosts, c->option_file, c->world.at.user, c->world.schema,
		                       m->number);
		return;
	}
	m->b = client_open(&c->world, OPTIONS("host", hosts, "defaults_file", c->option_file));
	if (bizlock_on_lost(m->b, hear_of_loss, m) != BIZLOCK_OK)
		die("on_lost: %s", bizlock_errmsg(m->b));
}

static void work(struct chaos_clients *c, unsigned number)
{
	struct member m = {.c = c, .number = number, .random = c->seed + number};
	struct chaos_call *call;
	struct chaos_hold *hold;

	while (!atomic_load(&c->go))
		pause_ms(LOOK_MS);
	begin(&m);
	atomic_fetch_add(&c->ready, 1);
	while (!atomic_load(&c->stop)) {
		hold = take(&m, (unsigned)rand_r(&m.random) % CHAOS_KEYS);
		if (!hold) {
			pause_ms(20); /* a server that is down may refuse at once */
			continue;
		}
		hold_for_a_while(&m, hold);
		give_back(&m, hold);
	}
	call = begin_call(&m, CHAOS_CLOSE, 0);
	bizlock_close(m.b);
	caller_free(m.caller);
	end_call(&m, call, BIZLOCK_OK);
}

/* ---- the application --------------------------------------------------------------- */

/* In its default isolation level a range that is locked keeps new rows out of its gaps. */
static void lock_ranges(struct chaos_clients *c, MYSQL *db, unsigned *random)
{
	while (!atomic_load(&c->stop) && db_try(db, "BEGIN")) {
		/* A deadlock or a timeout: nothing is locked. */
		db_try(db, "SELECT COUNT(*) FROM biz_lock WHERE biz_id >= 'key-%u' FOR UPDATE",
		       rand_r(random) % CHAOS_KEYS);
		pause_ms((unsigned)rand_r(random) % 100);
		if (!db_try(db, "ROLLBACK"))
			return;
		pause_ms((unsigned)rand_r(random) % 1000);
	}
}

static void be_the_application(struct chaos_clients *c)
{
	unsigned random = c->seed;

	while (!atomic_load(&c->go))
		pause_ms(LOOK_MS);
	while (!atomic_load(&c->stop)) {
		MYSQL *db = mysql_init(NULL);

		if (mysql_real_connect(db, NULL, c->app.user, c->app.password, c->world.schema, 0,
		                       c->app.socket, 0))
			lock_ranges(c, db, &random);
		mysql_close(db);
		pause_ms(200);
	}
}

/* ---- the reaper -------------------------------------------------------------------- */

/* Administrators let it come once a minute. With 0 a row may go that was needed a moment ago. */
static void be_the_reaper(struct chaos_clients *c)
{
	static const int64_t ages_ms[] = {0, 1000, 60000};
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock *b;

	while (!atomic_load(&c->go))
		pause_ms(LOOK_MS);
	b = client_open(&c->world, OPTIONS("host", c->hosts[0], "defaults_file", c->option_file));
	for (unsigned i = 0; !atomic_load(&c->stop); i++) {
		opts.older_than_ms = ages_ms[i % 3];
		if (bizlock_reap(b, &opts, NULL) != BIZLOCK_OK)
			pause_ms(200); /* broken as the cluster may be, it may answer at once */
		pause_ms(300);
	}
	bizlock_close(b);
}

/* ---- all of them ------------------------------------------------------------- */

struct chaos_clients *chaos_clients_fork(unsigned seed)
{
	struct chaos_clients *c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE,
	                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (c == MAP_FAILED)
		die("no room for a history");
	c->seed = seed;
	for (unsigned i = 0; i < CHAOS_PROCESSES + HELPERS; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork failed");
		if (pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (i < CHAOS_PROCESSES)
				work(c, i);
			else if (i == CHAOS_PROCESSES)
				be_the_application(c);
			else
				be_the_reaper(c);
			_exit(0);
		}
		c->pids[i] = pid; /* not by the child: c is shared */
	}
	return c;
}

void chaos_clients_go(struct chaos_clients *c, const struct world *w, const char *const hosts[3],
                      const char *option_file, const struct server *app, bool with_callers)
{
	c->world = *w;
	c->with_callers = with_callers;
	c->app = *app;
	snprintf(c->option_file, sizeof(c->option_file), "%s", option_file);
	for (unsigned i = 0; i < 3; i++)
		snprintf(c->hosts[i], sizeof(c->hosts[i]), "%s", hosts[i]);
	atomic_store(&c->go, true);
	eventually(atomic_load(&c->ready) == CHAOS_PROCESSES);
}

bool chaos_clients_end(struct chaos_clients *c, int64_t ms)
{
	int64_t end = now_ms() + ms;
	unsigned well = 0;

	atomic_store(&c->stop, true);
	for (unsigned i = 0; i < CHAOS_PROCESSES + HELPERS; i++) {
		int status = -1;

		while (waitpid(c->pids[i], &status, WNOHANG) == 0 && pause_before(end))
			;
		if (status == -1) {
			kill(c->pids[i], SIGKILL);
			waitpid(c->pids[i], &status, 0);
		}
		well += status == 0;
	}
	return well == CHAOS_PROCESSES + HELPERS;
}

struct chaos_history chaos_clients_history(const struct chaos_clients *c)
{
	return (struct chaos_history){.calls = c->calls,
	                              .n_calls = atomic_load(&c->n_calls),
	                              .holds = c->holds,
	                              .n_holds = atomic_load(&c->n_holds),
	                              .keys = CHAOS_KEYS};
}

const struct chaos_error *chaos_clients_error(const struct chaos_clients *c, unsigned number)
{
	return number < ERRORS_MAX && number < atomic_load(&c->n_errors) ? &c->errors[number]
	                                                                 : NULL;
}
