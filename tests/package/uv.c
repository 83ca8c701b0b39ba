/* bizlock in a loop of libuv's: uv_poll watches bizlock_fd(), and timers run beside it. Tasks get
 * one lock, one after the other; one is cancelled; one lock is lost. Prints what came of it. */
#include <bizlock_async.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

#define TASKS 50
#define TICK_MS 10
#define TICKS_BEFORE 20

struct task {
	char owner[16];
	uint64_t request;
};

static bizlock *lock;
static bizlock_key key = {"uv", "k"}, short_one = {"uv", "short"};
static struct task holder = {.owner = "holder"}, loser = {.owner = "loser"}, tasks[TASKS];
static int granted, cancelled, given_back, losses, ticks, ticks_at_first;
static uint64_t last_fence;
static uv_poll_t done;
static uv_timer_t ticker;

static void check(int rc, const char *what)
{
	if (rc == BIZLOCK_OK)
		return;
	fprintf(stderr, "%s: %s: %s\n", what, bizlock_err_name(rc), bizlock_errmsg(lock));
	exit(1);
}

static void look_whether_all_is_done(void)
{
	if (given_back < TASKS || cancelled < 1 || losses < 1)
		return;
	uv_poll_stop(&done);
	uv_timer_stop(&ticker);
}

static void on_released(void *arg, const bizlock_result *result)
{
	(void)arg;
	check(result->rc, "release");
	given_back++;
	look_whether_all_is_done();
}

static void on_acquired(void *arg, const bizlock_result *result)
{
	struct task *t = arg;

	if (result->rc == BIZLOCK_CANCELLED) {
		cancelled++;
		look_whether_all_is_done();
		return;
	}
	check(result->rc, "acquire");
	if (result->grant->fence <= last_fence)
		abort();
	last_fence = result->grant->fence;
	if (granted++ == 1) /* the holder's was the first */
		ticks_at_first = ticks;
	if (t != &holder)
		check(bizlock_release_start(lock, key, t->owner, on_released, t, NULL), "start");
}

static void on_short_one(void *arg, const bizlock_result *result)
{
	(void)arg;
	check(result->rc, "acquire");
}

static void on_lost(void *arg, bizlock_key lost, uint64_t fence)
{
	(void)arg, (void)lost, (void)fence;
	losses++;
	look_whether_all_is_done();
}

static void start(struct task *t, bizlock_key what, int64_t lease_ms, bizlock_done *fn)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.owner = t->owner;
	opts.lease_ms = (uint32_t)lease_ms;
	opts.flags = lease_ms ? BIZLOCK_NO_RENEW : 0;
	check(bizlock_acquire_start(lock, what, &opts, fn, t, &t->request), "start");
}

/* The loop turns while requests wait. Then the holder gives way, and one of the others up. */
static void on_tick(uv_timer_t *timer)
{
	(void)timer;
	if (++ticks != TICKS_BEFORE)
		return;
	check(bizlock_cancel(lock, tasks[TASKS / 2].request), "cancel");
	check(bizlock_release_start(lock, key, holder.owner, on_released, &holder, NULL), "start");
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
	(void)poll, (void)events;
	if (status != 0)
		abort();
	check(bizlock_dispatch(lock, NULL), "dispatch");
}

int main(void)
{
	uv_loop_t *loop = uv_default_loop();

	check(bizlock_new(&lock), "new");
	check(bizlock_open(lock), "open");
	check(bizlock_on_lost(lock, on_lost, NULL), "on_lost");
	if (uv_poll_init(loop, &done, bizlock_fd(lock)) != 0 ||
	    uv_poll_start(&done, UV_READABLE, on_readable) != 0 ||
	    uv_timer_init(loop, &ticker) != 0)
		abort();
	start(&holder, key, 0, on_acquired);
	start(&loser, short_one, 500, on_short_one);
	while (granted == 0 && uv_run(loop, UV_RUN_ONCE))
		;
	for (int i = 0; i < TASKS; i++) {
		snprintf(tasks[i].owner, sizeof(tasks[i].owner), "task-%d", i);
		start(&tasks[i], key, 0, on_acquired);
	}
	uv_timer_start(&ticker, on_tick, TICK_MS, TICK_MS);
	uv_run(loop, UV_RUN_DEFAULT);
	bizlock_close(lock);
	printf("%d granted, %d cancelled, %d lost, %s\n", granted, cancelled, losses,
	       ticks_at_first >= TICKS_BEFORE ? "timers in between" : "no timers in between");
	return 0;
}
