/* What bizlock_on_trace() tells: why a contender went which way, and what became of its lock. */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_ask.h"

TestSuite(trace, .init = world_begin, .fini = world_end, .timeout = 240);

#define LINES_MAX 2048

/* The lines so far. */
static struct {
	pthread_mutex_t mu;
	unsigned n;
	struct line {
		char id[BIZLOCK_ID_MAX + 1], owner[BIZLOCK_OWNER_NAME_MAX + 1], text[1024];
	} list[LINES_MAX];
} told = {.mu = PTHREAD_MUTEX_INITIALIZER};

static void keep(void *arg, const bizlock_trace *t)
{
	struct line *line;

	(void)arg;
	cr_assert_eq(t->size, sizeof(*t));
	cr_assert_gt(t->time_us, 0);
	pthread_mutex_lock(&told.mu);
	line = &told.list[told.n < LINES_MAX ? told.n++ : LINES_MAX - 1];
	snprintf(line->id, sizeof(line->id), "%s", t->biz_id ? t->biz_id : "");
	snprintf(line->owner, sizeof(line->owner), "%s", t->owner ? t->owner : "");
	snprintf(line->text, sizeof(line->text), "%s", t->text);
	pthread_mutex_unlock(&told.mu);
}

static void begin_trace(bizlock *b)
{
	expect(OK, b, bizlock_on_trace(b, keep, NULL));
}

/* Once this returns, all lines have been told. */
static void end_trace(bizlock *b)
{
	expect(OK, b, bizlock_on_trace(b, NULL, NULL));
}

/* Which line, from `from` on, has these words, and is about this key ("": any). -1: none. */
static int find_line(const char *id, const char *words, int from)
{
	int found = -1;

	pthread_mutex_lock(&told.mu);
	for (int i = from; i < (int)told.n && found < 0; i++)
		if ((!*id || strcmp(told.list[i].id, id) == 0) && strstr(told.list[i].text, words))
			found = i;
	pthread_mutex_unlock(&told.mu);
	return found;
}

static bool was_told(const char *id, const char *words)
{
	return find_line(id, words, 0) >= 0;
}

static void show_lines(void)
{
	pthread_mutex_lock(&told.mu);
	for (unsigned i = 0; i < told.n; i++)
		fprintf(stderr, "%s\n", told.list[i].text);
	pthread_mutex_unlock(&told.mu);
}

/* These words were told of the key in this order; NULL ends them. */
static void expect_lines(const char *id, const char *const *words)
{
	int at = -1;

	for (; *words; words++) {
		at = find_line(id, *words, at + 1);
		if (at < 0)
			show_lines();
		cr_assert_geq(at, 0, "was not told, or too early: %s", *words);
	}
}

#define EXPECT_LINES(id, ...) expect_lines((id), (const char *const[]){__VA_ARGS__, NULL})

Test(trace, a_lock_that_is_free_is_taken_and_given_back)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char fence[64], tid[32], start[64];

	begin_trace(b);
	expect(OK, b, acquire(b, "k", .grant = &grant));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	end_trace(b);
	snprintf(fence, sizeof(fence), "acquired, fence %llu,", (unsigned long long)grant.fence);
	EXPECT_LINES("k", "goes for the row", fence, "granted, depth 1",
	             "release of the last level");
	cr_assert_not(was_told("k", "row: "), "it was free, and yet looked at");
	snprintf(tid, sizeof(tid), "%d", (int)gettid());
	snprintf(start, sizeof(start), "test/k %s: ", tid);
	for (unsigned i = 0; i < told.n; i++) {
		if (!told.list[i].id[0])
			continue;
		cr_assert_str_eq(told.list[i].owner, tid);
		cr_assert_eq(strncmp(told.list[i].text, start, strlen(start)), 0, "%s",
		             told.list[i].text);
	}
}

Test(trace, a_contender_sees_the_holder_and_sleeps_at_the_doorbell)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	struct call c;

	expect(OK, holder, acquire_as(holder, "k", "holder"));
	begin_trace(b);
	call_start(&c, b, "k", .wait_ms = -1, .owner = "waiter");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&c), BIZLOCK_OK, "%s", c.errmsg);
	end_trace(b);
	EXPECT_LINES("k", "test/k waiter: goes for the row",
	             "doorbell: the holder's; waits for the doorbell", "sleeps at the doorbell",
	             "the doorbell rang", "acquired, fence", "granted");
	cr_assert(was_told("k", "row: held by holder@"));
}

Test(trace, one_that_does_not_get_it_says_who_has_it)
{
	bizlock *holder = client(NULL), *b = client(NULL);

	expect(OK, holder, acquire_as(holder, "k", "holder"));
	begin_trace(b);
	expect(BUSY, b, acquire(b, "k"));
	end_trace(b);
	EXPECT_LINES("k", "row: held by holder@", "not acquired: held by holder@");
	cr_assert(was_told("k", "gives up"));
}

Test(trace, without_doorbells_it_polls)
{
	bizlock *holder = client(NULL), *b = client(OPTIONS("queue", "off"));
	struct call c;

	deadlocks_may_happen();
	expect(OK, holder, acquire_as(holder, "k", "holder"));
	begin_trace(b);
	call_start(&c, b, "k", .wait_ms = -1, .owner = "waiter");
	eventually(was_told("k", "looks again in"));
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	cr_assert_eq(call_join(&c), BIZLOCK_OK, "%s", c.errmsg);
	end_trace(b);
	EXPECT_LINES("k", "doorbell: not used; polls", "looks again in", "acquired, fence");
}

Test(trace, a_request_that_waits_is_watched)
{
	bizlock *holder = client(NULL), *b = client(NULL);
	struct ask a;

	expect(OK, holder, acquire_as(holder, "k", "holder"));
	begin_trace(b);
	ask_for(&a, b, "k", "task", .wait_ms = -1);
	eventually(was_told("k", "is watched"));
	expect(OK, holder, bizlock_release(holder, KEY("k"), "holder", NULL));
	ask_ends(OK, &a);
	ask_release(&a);
	ask_ends(OK, &a);
	end_trace(b);
	EXPECT_LINES("k", "task: goes for the row", "the holder's", "is watched", "acquired",
	             "release of the last level");
}

/* A stopped process has the doorbell, and there is no row. */
Test(trace, one_that_goes_past_the_doorbell)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *b = client(NULL);

	expect_answer(OK, peer_acquire(&peer, "k", .lease_ms = 600000));
	peer_signal(&peer, SIGSTOP);
	db_run(world.admin, "DELETE FROM biz_lock");
	begin_trace(b);
	expect(OK, b, acquire(b, "k", .wait_ms = -1));
	end_trace(b);
	EXPECT_LINES("k", "row: free; doorbell: another contender's; waits",
	             "goes past the doorbell", "acquired");
	peer_end(&peer);
}

Test(trace, a_takeover)
{
	struct peer dead = peer_start(&world, NULL);
	bizlock *b = client(NULL);

	expect_answer(OK, peer_acquire(&dead, "k", .lease_ms = 1000));
	peer_signal(&dead, SIGKILL);
	lease_is_over("k");
	begin_trace(b);
	expect(OK, b, acquire(b, "k", .wait_ms = -1));
	end_trace(b);
	EXPECT_LINES("k", "row: its lease is over", "acquired, fence",
	             "taken over from an owner that never released");
}

Test(trace, a_renewal_and_a_loss)
{
	bizlock *b = client(NULL), *other = client(NULL);

	begin_trace(b);
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 3000));
	eventually(was_told("k", "ms: done"));
	expect(OK, other, bizlock_break(other, KEY("k"), row_of(&world, KEY("k")).fence));
	expect(LOST, b, bizlock_verify(b, KEY("k"), NULL));
	end_trace(b);
	EXPECT_LINES("k", "acquired", "renewal, fence", "lost, fence");
	cr_assert(was_told("k", "the server does not have it any more"));
}

static void take_and_end(void *arg)
{
	expect(OK, arg, acquire(arg, "k"));
}

Test(trace, a_thread_that_has_ended_leaves_its_lock)
{
	bizlock *b = client(NULL);

	begin_trace(b);
	in_another_thread(take_and_end, b);
	eventually(was_told("k", "removal of its doorbell in the background"));
	end_trace(b);
	EXPECT_LINES("k", "acquired", "the thread that held it has ended",
	             "removal of its doorbell");
}

/* Within 250 ms of the first acquisition, which a busy machine may need for more than one try. */
static bool hands_over(bizlock *b)
{
	struct call c;

	expect(OK, b, acquire_as(b, "k", "one"));
	call_start(&c, b, "k", .wait_ms = -1, .owner = "two");
	call_blocks(&c);
	expect(OK, b, bizlock_release(b, KEY("k"), "one", NULL));
	cr_assert_eq(call_join(&c), BIZLOCK_OK, "%s", c.errmsg);
	expect(OK, b, bizlock_release(b, KEY("k"), "two", NULL));
	return was_told("k", "one: hands over to two of this client: done");
}

Test(trace, one_thread_hands_the_lock_to_the_next)
{
	bizlock *b = client(NULL);

	begin_trace(b);
	eventually(hands_over(b));
	end_trace(b);
	EXPECT_LINES("k", "two: acquired", "two: granted");
}

Test(trace, connections_are_opened_and_lost)
{
	bizlock *b = client_new(&world, NULL);

	begin_trace(b);
	expect(OK, b, bizlock_open(b));
	works(b);
	kill_connections();
	works(b);
	bizlock_close(b);
	EXPECT_LINES("", "opened", " lost", "opened");
}

/* ---- whom it tells ---------------------------------------------------------------------- */

Test(trace, nobody_is_told_before_and_after)
{
	bizlock *b = client(NULL);
	unsigned n;

	works(b);
	begin_trace(b);
	end_trace(b);
	cr_assert_eq(told.n, 0);
	begin_trace(b);
	works(b);
	end_trace(b);
	n = told.n;
	cr_assert_gt(n, 0);
	works(b);
	cr_assert_eq(told.n, n);
}

Test(trace, close_tells_all_and_then_nobody)
{
	bizlock *b = client_new(&world, NULL);
	unsigned n;

	expect(OK, b, bizlock_open(b));
	begin_trace(b);
	expect(OK, b, acquire(b, "k"));
	bizlock_close(b);
	n = told.n;
	EXPECT_LINES("k", "acquired", "released by close");
	steadily(told.n == n, 100);
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool inside;

static void hang(void *arg, const bizlock_trace *line)
{
	inside = true;
	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	keep(arg, line);
}

static uint64_t renewals(bizlock *b)
{
	bizlock_numbers n = BIZLOCK_NUMBERS_INIT;

	expect(OK, b, bizlock_stats(b, &n));
	return n.renewals;
}

/* A terminal that is stopped by Ctrl-S, for example. */
Test(trace, a_function_that_hangs_costs_no_lock)
{
	bizlock *b = client(NULL);

	pthread_mutex_lock(&gate);
	expect(OK, b, bizlock_on_trace(b, hang, NULL));
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = 3000));
	eventually(inside);
	eventually(renewals(b) >= 2);
	expect(OK, b, acquire(b, "other"));
	expect(OK, b, bizlock_release(b, KEY("other"), NULL, NULL));
	pthread_mutex_unlock(&gate);
	end_trace(b);
	cr_assert(was_told("k", "renewal, fence"));
}

struct caller {
	bizlock *b;
	int release, set;
};

/* What it does is traced, too; so only once. */
static void call_back(void *arg, const bizlock_trace *line)
{
	struct caller *c = arg;

	if (c->release >= 0 || !strstr(line->text, "granted"))
		return;
	c->release = bizlock_release(c->b, KEY("k"), "task", NULL);
	c->set = bizlock_on_trace(c->b, NULL, NULL);
}

Test(trace, its_function_may_call_all_but_this)
{
	struct caller c = {client(NULL), -1, -1};

	expect(OK, c.b, bizlock_on_trace(c.b, call_back, &c));
	expect(OK, c.b, acquire_as(c.b, "k", "task"));
	end_trace(c.b);
	cr_assert_eq(c.release, BIZLOCK_OK);
	cr_assert_eq(c.set, BIZLOCK_MISUSE);
}

#define THREADS 4

struct worker {
	bizlock *b;
	char id[8];
	int rc;
	pthread_t thread;
};

static void *work_often(void *arg)
{
	struct worker *w = arg;

	for (int i = 0; i < 20 && w->rc == BIZLOCK_OK; i++) {
		w->rc = acquire(w->b, w->id);
		if (w->rc == BIZLOCK_OK)
			w->rc = bizlock_release(w->b, KEY(w->id), NULL, NULL);
	}
	return NULL;
}

/* Under ThreadSanitizer it finds what is shared without a mutex. */
Test(trace, threads_are_at_work_while_it_comes_and_goes)
{
	struct worker workers[THREADS];
	bizlock *b = client(NULL);

	for (int i = 0; i < THREADS; i++) {
		struct worker *w = &workers[i];

		*w = (struct worker){.b = b};
		snprintf(w->id, sizeof(w->id), "k%d", i);
		cr_assert_eq(pthread_create(&w->thread, NULL, work_often, w), 0);
	}
	for (int i = 0; i < 50; i++) {
		begin_trace(b);
		expect(OK, b, acquire(b, "mine"));
		expect(OK, b, bizlock_release(b, KEY("mine"), NULL, NULL));
		end_trace(b);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		cr_assert_eq(workers[i].rc, BIZLOCK_OK);
	}
	cr_assert(was_told("mine", "acquired"));
}

Test(trace, a_forked_child_is_not_told)
{
	bizlock *b = client_new(&world, NULL);
	int status;
	pid_t pid;

	begin_trace(b);
	pid = fork();
	if (pid == 0) {
		int rc = bizlock_on_trace(b, keep, NULL);

		bizlock_close(b);
		_exit(rc == BIZLOCK_MISUSE && told.n == 0 ? 0 : 1);
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	expect(OK, b, bizlock_open(b));
	bizlock_close(b);
	cr_assert(was_told("", "opened"));
}

Test(trace, no_client_is_invalid)
{
	cr_assert_eq(bizlock_on_trace(NULL, keep, NULL), BIZLOCK_INVALID);
}
