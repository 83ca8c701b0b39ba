/* bizlock_reap(): its arguments, its own lock, and how one can end it. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_reap.h"

TestSuite(reap_api, .init = world_begin, .fini = world_end, .timeout = 240);

/* ---- arguments ------------------------------------------------------------------------ */

static void refused(bizlock *b, const bizlock_reap_opts *opts, const char *word)
{
	bizlock_reap_result result = {sizeof(result), 1, 2, 3, 4, 5, 6};

	expect(INVALID, b, bizlock_reap(b, opts, &result));
	expect_message(b, word);
	cr_assert(result.rows == 1 && result.looked_at == 2 && result.leases == 3 &&
	          result.rests == 4 && result.row_locks == 5 && result.passed_over == 6);
}

struct later_opts {
	bizlock_reap_opts known;
	uint64_t added[4];
};

struct later_result {
	bizlock_reap_result known;
	uint64_t added[4];
};

static void refuse_sizes(bizlock *b)
{
	struct later_opts later = {.known = BIZLOCK_REAP_OPTS_INIT};
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = BIZLOCK_REAP_RESULT_INIT;

	opts.size = 0;
	refused(b, &opts, "bizlock_reap_opts.size");
	opts.size = sizeof(opts) - 1;
	refused(b, &opts, "bizlock_reap_opts.size");
	result.size = sizeof(result) - 1;
	expect(INVALID, b, bizlock_reap(b, NULL, &result));
	expect_message(b, "bizlock_reap_result.size");
	later.known.size = sizeof(later);
	later.added[3] = 1;
	refused(b, &later.known, "not zero");
}

static void refuse_values(bizlock *b)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;

	opts.older_than_ms = -1;
	refused(b, &opts, "older_than_ms");
	opts.older_than_ms = 3153600000001;
	refused(b, &opts, "older_than_ms");
	opts.older_than_ms = 0;
	opts.batch = 0;
	refused(b, &opts, "batch");
	opts.batch = 10001;
	refused(b, &opts, "10000");
	opts.batch = 1;
	opts.flags = 2;
	refused(b, &opts, "flags");
}

Test(reap_api, bad_arguments_are_refused_before_anything_is_sent)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = client_through(p, NULL);
	unsigned packets;

	works(b);
	packets = proxy_packets(p);
	refuse_sizes(b);
	refuse_values(b);
	cr_assert_eq(proxy_packets(p), packets);
	proxy_stop(p);
}

Test(reap_api, structs_of_a_later_version_are_understood)
{
	bizlock *b = client(NULL);
	struct later_opts opts = {.known = BIZLOCK_REAP_OPTS_INIT};
	struct later_result result = {.known = BIZLOCK_REAP_RESULT_INIT, .added = {1, 2, 3, 4}};

	opts.known.size = sizeof(opts);
	result.known.size = sizeof(result);
	stale_leases(world.admin, "old", .rows = 3, .ago_ms = OLD_MS);
	expect(OK, b, bizlock_reap(b, &opts.known, &result.known));
	cr_assert_eq(result.known.size, sizeof(result));
	cr_assert_eq(result.known.leases, 3);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(result.added[i], 0);
}

Test(reap_api, a_client_that_is_not_there_or_not_open)
{
	bizlock *b = client_new(&world, NULL);

	cr_assert_eq(bizlock_reap(NULL, NULL, NULL), BIZLOCK_INVALID);
	expect(MISUSE, b, bizlock_reap(b, NULL, NULL));
	bizlock_close(b);
}

Test(reap_api, a_forked_child_has_no_such_client)
{
	bizlock *b = client(NULL);
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(bizlock_reap(b, NULL, NULL));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == BIZLOCK_MISUSE);
}

/* ---- two of them ---------------------------------------------------------------------------- */

static void second_reaper(void *arg)
{
	bizlock *b = arg;
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	bizlock_reap_result result = {sizeof(result), 1, 2, 3, 4, 5, 6};

	expect(BUSY, b, bizlock_reap(b, NULL, &result));
	expect_message(b, "another reaper is at work");
	expect_message(b, row_of(&world, REAPER).owner);
	cr_assert_eq(result.leases, 3);
	opts.flags = BIZLOCK_REAP_DRY_RUN;
	expect(OK, b, bizlock_reap(b, &opts, NULL));
}

static void and_a_second(bizlock *first, bizlock *second)
{
	struct at_progress p = {.at = 2, .act = second_reaper, .arg = second};
	bizlock_reap_opts opts = with_progress(&p, 10);

	stale_leases(world.admin, "old", .rows = 50, .ago_ms = OLD_MS);
	cr_assert_eq(reaped(first, &opts).leases, 50);
	cr_assert_geq(p.calls, 5);
	cr_assert(no_row(&world, REAPER), "its lock was not given back");
	reaped(second, NULL);
}

Test(reap_api, the_second_steps_aside_and_names_the_first)
{
	and_a_second(client(NULL), client(NULL));
}

Test(reap_api, the_second_may_be_of_the_same_client_and_thread)
{
	bizlock *b = client(NULL);

	and_a_second(b, b);
}

Test(reap_api, another_holder_of_its_lock_keeps_reapers_out)
{
	bizlock *b = client(NULL);

	stale_leases(world.admin, "old", .rows = 5, .ago_ms = OLD_MS);
	expect(OK, b, bizlock_acquire(b, REAPER, NULL, NULL));
	expect(BUSY, b, bizlock_reap(b, NULL, NULL));
	cr_assert_eq(left_of("biz_lock", "old"), 5);
	expect(OK, b, bizlock_release(b, REAPER, NULL, NULL));
	cr_assert_eq(reaped(b, NULL).leases, 5);
}

/* ---- its lock ----------------------------------------------------------------------------------
 */

static atomic_uint lost;

static void note_loss(void *arg, bizlock_key key, uint64_t fence)
{
	(void)arg;
	(void)fence;
	atomic_fetch_add(&lost, strcmp(key.biz_id, BIZLOCK_REAPER_ID) == 0);
}

/* Breaks the reaper's lock, and waits until its client knows. */
static void break_its_lock(void *arg)
{
	bizlock *other = arg;

	expect(OK, other, bizlock_break(other, REAPER, row_of(&world, REAPER).fence));
	eventually(atomic_load(&lost) == 1);
}

Test(reap_api, stops_when_its_lock_is_lost)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 2, .act = break_its_lock, .arg = client(NULL)};
	bizlock_reap_opts opts = with_progress(&p, 10);

	expect(OK, b, bizlock_on_lost(b, note_loss, NULL));
	stale_leases(world.admin, "old", .rows = 50, .ago_ms = OLD_MS);
	expect(LOST, b, bizlock_reap(b, &opts, NULL));
	expect_message(b, "reaper");
	cr_assert_eq(p.calls, 2);
	cr_assert_eq(p.last.leases, 20);
	cr_assert_eq(left_of("biz_lock", "old"), 30);
	reaped(b, NULL);
	cr_assert_eq(left_of("biz_lock", "old"), 0);
}

static void is_renewed(const char *renew)
{
	bizlock *b = client(OPTIONS("renew", renew));
	struct at_progress p = {.at = 0};
	bizlock_reap_opts opts = with_progress(&p, 1);
	struct reap_thread t;
	long long first;

	opts.pause_ms = 3600000;
	stale_leases(world.admin, "old", .rows = 3, .ago_ms = OLD_MS);
	reap_start(&t, b, &opts);
	eventually(left_of("biz_lock", "old") == 2);
	first = row_of(&world, REAPER).timeout_us;
	eventually(row_of(&world, REAPER).timeout_us > first);
	cr_assert(!atomic_load(&t.done));
	bizlock_interrupt(b);
	cr_assert_eq(reap_join(&t), BIZLOCK_CANCELLED, "%s", t.errmsg);
}

Test(reap_api, its_lock_is_renewed_while_it_works)
{
	is_renewed("on");
}

Test(reap_api, its_lock_is_renewed_where_nothing_else_is)
{
	is_renewed("off");
}

/* ---- an early end ------------------------------------------------------------------ */

static void interrupt(void *arg)
{
	bizlock_interrupt(arg);
}

Test(reap_api, an_interrupt_ends_it_after_the_batch)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 2, .act = interrupt, .arg = b};
	bizlock_reap_opts opts = with_progress(&p, 10);
	bizlock_reap_result result = {sizeof(result), 1, 2, 3, 4, 5, 6};

	stale_leases(world.admin, "old", .rows = 50, .ago_ms = OLD_MS);
	expect(CANCELLED, b, bizlock_reap(b, &opts, &result));
	cr_assert_eq(result.leases, 3, "outputs are for OK");
	cr_assert_eq(p.calls, 2);
	cr_assert_eq(left_of("biz_lock", "old"), 30);
	cr_assert(no_row(&world, REAPER), "its lock was not given back");
	cr_assert_eq(reaped(b, NULL).leases, 30);
}

Test(reap_api, an_interrupt_ends_a_dry_run)
{
	bizlock *b = client(NULL);
	struct at_progress p = {.at = 1, .act = interrupt, .arg = b};
	bizlock_reap_opts opts = with_progress(&p, 10);

	opts.flags = BIZLOCK_REAP_DRY_RUN;
	stale_leases(world.admin, "old", .rows = 1000, .ago_ms = OLD_MS);
	expect(CANCELLED, b, bizlock_reap(b, &opts, NULL));
	cr_assert_eq(p.calls, 1);
}

Test(reap_api, an_earlier_interrupt_is_none_of_its_business)
{
	bizlock *b = client(NULL);

	bizlock_interrupt(b);
	stale_leases(world.admin, "old", .rows = 5, .ago_ms = OLD_MS);
	cr_assert_eq(reaped(b, NULL).leases, 5);
}

Test(reap_api, closing_the_client_ends_it)
{
	bizlock *b = client_open(&world, NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	struct reap_thread t;

	opts.batch = 1;
	opts.pause_ms = 3600000;
	stale_leases(world.admin, "old", .rows = 5, .ago_ms = OLD_MS);
	reap_start(&t, b, &opts);
	eventually(left_of("biz_lock", "old") == 4);
	bizlock_close(b);
	eventually(atomic_load(&t.done));
	pthread_join(t.thread, NULL);
	cr_assert_eq(t.rc, BIZLOCK_CANCELLED);
	cr_assert_eq(left_of("biz_lock", "old"), 4);
	cr_assert(no_row(&world, REAPER));
}

/* There is a pause between batches, from the second on, as long as it was asked for. */
Test(reap_api, pauses_between_batches)
{
	bizlock *b = client(NULL);
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	int64_t start = now_ms();

	opts.batch = 1;
	opts.pause_ms = 300;
	stale_leases(world.admin, "old", .rows = 4, .ago_ms = OLD_MS);
	cr_assert_eq(reaped(b, &opts).leases, 4);
	cr_assert_geq(now_ms() - start, 3 * 300);
}
