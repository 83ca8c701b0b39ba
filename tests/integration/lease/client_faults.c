/* Holders whose leases are renewed. What happens to their locks when they are stopped, die, fork,
 * or their thread ends. */
#define _GNU_SOURCE 1
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(client_faults, .init = world_begin, .fini = world_end, .timeout = 240);

#define LEASE_MS 3000
#define LATE_MS 5000 /* how late a busy machine may be */

static void outlives_its_first_lease(const char *id)
{
	long long first_end = row_of(&world, KEY(id)).timeout_us;

	eventually(server_us() > first_end);
}

/* ---- a process that stands still -------------------------------------------- */

static struct answer take_again(struct peer *p, const char *id)
{
	return peer_acquire(p, id, .lease_ms = LEASE_MS, .renewed = true);
}

/* The holder of "k" is stopped for longer than its lease, and goes on. */
static struct peer late_holder(bool robbed, uint64_t *ret_fence)
{
	struct peer p = peer_start(&world, NULL);
	struct answer a = peer_acquire(&p, "k", .lease_ms = LEASE_MS, .renewed = true);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *stranger = client(NULL);

	expect_answer(OK, a);
	outlives_its_first_lease("k");
	peer_signal(&p, SIGSTOP);
	lease_is_over("k");
	if (robbed) {
		expect(OK, stranger, acquire(stranger, "k", .lease_ms = 600000, .grant = &grant));
		cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	}
	peer_signal(&p, SIGCONT);
	*ret_fence = a.grant.fence;
	return p;
}

/* The first call says LOST, whichever call it is. Before any call, bizlock_left_ms() says so as
 * well. */
static void knows_at_once(bool robbed, struct answer (*first_call)(struct peer *, const char *))
{
	uint64_t fence;
	struct peer p = late_holder(robbed, &fence);
	struct answer a = first_call(&p, "k");

	cr_assert_eq(a.rc, BIZLOCK_LOST, "%s: %s", bizlock_err_name(a.rc), a.errmsg);
	cr_assert_leq(a.left_ms, 0);
	eventually(peer_look(&p, "k").lost == 1);
	a = peer_look(&p, "k");
	cr_assert_eq(a.lost_fence, fence);
	cr_assert_leq(a.left_ms, 0);
	steadily(peer_look(&p, "k").lost == 1, 500);
	peer_end(&p);
}

Test(client_faults, stopped_and_robbed_verify_says_lost)
{
	knows_at_once(true, peer_verify);
}

Test(client_faults, stopped_and_robbed_renew_says_lost)
{
	knows_at_once(true, peer_renew);
}

Test(client_faults, stopped_and_robbed_release_says_lost)
{
	knows_at_once(true, peer_release);
}

Test(client_faults, stopped_and_robbed_reentry_says_lost)
{
	knows_at_once(true, take_again);
}

/* No other holder came, but one might have come and gone. */
Test(client_faults, stopped_past_its_lease_it_is_lost_even_if_nobody_took_it)
{
	knows_at_once(false, peer_verify);
}

Test(client_faults, stopped_past_its_lease_it_is_not_reentered_even_if_nobody_took_it)
{
	knows_at_once(false, take_again);
}

Test(client_faults, stopped_for_less_than_its_lease_it_still_holds)
{
	struct peer p = peer_start(&world, NULL);

	expect_answer(OK, peer_acquire(&p, "k", .lease_ms = 10000, .renewed = true));
	for (int i = 0; i < 5; i++) {
		peer_signal(&p, SIGSTOP);
		pause_ms(200);
		peer_signal(&p, SIGCONT);
	}
	expect_answer(OK, peer_verify(&p, "k"));
	cr_assert_gt(peer_look(&p, "k").left_ms, 0);
	cr_assert_eq(peer_look(&p, "k").lost, 0);
	peer_end(&p);
}

/* ---- a process that dies ------------------------------------------------------ */

Test(client_faults, a_killed_holder_is_waited_for_until_its_lease_ends)
{
	struct peer holder = peer_start(&world, NULL), waiter = peer_start(&world, NULL);
	struct answer held = peer_acquire(&holder, "k", .lease_ms = LEASE_MS, .renewed = true), a;
	long long lease_end;

	expect_answer(OK, held);
	peer_ask_acquire(&waiter, "k", .wait_ms = -1, .lease_ms = 600000);
	outlives_its_first_lease("k");
	cr_assert(!peer_has_answer(&waiter));
	peer_signal(&holder, SIGKILL);
	lease_end = row_of(&world, KEY("k")).timeout_us;
	a = peer_answer(&waiter);
	expect_answer(OK, a);
	cr_assert_eq(a.grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_gt(a.grant.fence, held.grant.fence);
	cr_assert_geq(began_us("k"), lease_end);
	cr_assert_leq(began_us("k"), lease_end + (LEASE_MS + LATE_MS) * 1000);
	peer_end(&waiter);
	peer_end(&holder);
}

/* ---- a process that forks ----------------------------------------------------- */

/* In the child: 0, or the number of the call that should have been refused. */
static int try_to_disturb(bizlock *b, bool close_it)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock_numbers numbers = BIZLOCK_NUMBERS_INIT;

	if (bizlock_acquire(b, KEY("k"), NULL, &grant) != BIZLOCK_MISUSE)
		return 1;
	if (bizlock_release(b, KEY("k"), NULL, NULL) != BIZLOCK_MISUSE)
		return 2;
	if (bizlock_renew(b, KEY("k"), NULL, 0) != BIZLOCK_MISUSE)
		return 3;
	if (bizlock_verify(b, KEY("k"), NULL) != BIZLOCK_MISUSE)
		return 4;
	if (bizlock_on_lost(b, NULL, NULL) != BIZLOCK_MISUSE)
		return 5;
	if (bizlock_stats(b, &numbers) != BIZLOCK_MISUSE)
		return 6;
	if (bizlock_left_ms(b, KEY("k"), NULL) > 0)
		return 7;
	bizlock_interrupt(b);
	if (close_it)
		bizlock_close(b);
	return 0;
}

static int be_a_stranger(bizlock *b)
{
	bizlock *own = client_open(&world, NULL);
	int rc = try_to_disturb(b, true);

	if (rc == 0 && acquire(own, "k") != BIZLOCK_BUSY)
		rc = 10;
	if (rc == 0 && bizlock_release(own, KEY("k"), NULL, NULL) != BIZLOCK_NOT_OWNER)
		rc = 11;
	if (rc == 0 && acquire(own, "other") != BIZLOCK_OK)
		rc = 12;
	bizlock_close(own);
	return rc;
}

static int only_leave(bizlock *b)
{
	return try_to_disturb(b, false);
}

/* Takes "k", renewed, and forks; the child does `what` and ends; the parent's
 * hold is still its own, and renewed. */
static void survives_a_child(int (*what)(bizlock *b))
{
	static struct losses losses;
	bizlock *b = client(NULL);
	int status;
	pid_t pid;

	losses_watch(&losses, b);
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	pid = fork();
	if (pid == 0)
		_exit(what(b));
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "%d", WEXITSTATUS(status));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	outlives_its_first_lease("k");
	outlives_its_first_lease("k");
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(losses.count, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	works(b);
}

Test(client_faults, a_forked_child_that_closes_does_not_disturb)
{
	survives_a_child(be_a_stranger);
}

Test(client_faults, a_forked_child_that_only_ends_does_not_disturb)
{
	survives_a_child(only_leave);
}

#define NOT_PERMITTED 77

/* A child that is process 1 of its own namespace, by way of another, which waits for it and ends as
 * it does: after unshare() a process cannot start threads. */
static pid_t fork_as_first(void)
{
	pid_t pid = fork();
	int status;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID) != 0)
		_exit(NOT_PERMITTED);
	pid = fork();
	if (pid == 0)
		return 0;
	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		_exit(24);
	_exit(WEXITSTATUS(status));
}

/* Runs as process 1, as its child does. 0, or the number of what went wrong. */
static int have_a_child_of_the_same_number(void)
{
	bizlock *b = client_open(&world, NULL);
	int status = 0;
	pid_t pid;

	if (getpid() != 1 || acquire_renewed(b, "k", .lease_ms = LEASE_MS) != BIZLOCK_OK)
		return 20;
	pid = fork_as_first();
	if (pid == 0)
		_exit(getpid() == 1 ? try_to_disturb(b, true) : 21);
	eventually(waitpid(pid, &status, WNOHANG) == pid);
	if (status != 0)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 22;
	if (bizlock_verify(b, KEY("k"), NULL) != BIZLOCK_OK)
		return 23;
	bizlock_interrupt(b);
	bizlock_close(b);
	return 0;
}

Test(client_faults, a_forked_child_with_its_parents_number_does_not_disturb)
{
	pid_t pid = fork_as_first();
	int status;

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(have_a_child_of_the_same_number());
	}
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status), "signal %d", WTERMSIG(status));
	skip_unless(WEXITSTATUS(status) != NOT_PERMITTED, "new PID namespaces are for root");
	cr_assert_eq(WEXITSTATUS(status), 0, "%d", WEXITSTATUS(status));
	works(client(NULL));
}

/* Runs in the parent. The child has inherited the connection, and keeps it open, with the doorbell,
 * when the parent is dead. It must not keep the lease. */
static _Noreturn void hold_and_fork(int ready, int until)
{
	bizlock *b;
	char c;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	b = client_open(&world, NULL);
	if (acquire_renewed(b, "k", .lease_ms = LEASE_MS) != BIZLOCK_OK || fork() < 0)
		die("%s", bizlock_errmsg(b));
	/* Both processes come here. The end of the pipe tells the child to end. */
	if (write(ready, "", 1) != 1 || read(until, &c, 1) != 0)
		die("the pipes are broken");
	_exit(0);
}

Test(client_faults, a_child_that_lives_on_does_not_keep_its_dead_parents_lock)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int ready[2], until[2], status;
	char c[2];
	pid_t pid;

	cr_assert(pipe(ready) == 0 && pipe(until) == 0);
	pid = fork();
	if (pid == 0) {
		close(until[1]);
		hold_and_fork(ready[1], until[0]);
	}
	cr_assert(read(ready[0], c, 1) == 1 && read(ready[0], c, 1) == 1);
	outlives_its_first_lease("k");
	kill(pid, SIGKILL);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	close(until[1]);
}

/* ---- a thread that ends ------------------------------------------------------- */

static void take_k(void *arg)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, arg, acquire_renewed(arg, "k", .lease_ms = LEASE_MS, .grant = &grant));
	expect(OK, arg, acquire_renewed(arg, "k", .lease_ms = LEASE_MS, .grant = &grant));
}

Test(client_faults, what_an_ended_thread_held_is_reported_and_waited_for)
{
	static struct losses losses;
	bizlock *b = client(NULL), *stranger = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct row row;

	losses_watch(&losses, b);
	in_another_thread(take_k, b);
	eventually(losses.count == 1);
	row = row_of(&world, KEY("k"));
	cr_assert(row.there);
	cr_assert_eq(losses.list[0].fence, row.fence);
	cr_assert_str_eq(losses.list[0].id, "k");
	expect(OK, stranger, acquire(stranger, "k", .wait_ms = PATIENCE_MS, .grant = &grant));
	cr_assert_eq(grant.flags, BIZLOCK_TOOK_OVER);
	cr_assert_geq(began_us("k"), row.timeout_us, "it was renewed, or taken too early");
	cr_assert_leq(began_us("k"), row.timeout_us + LATE_MS * 1000LL);
	cr_assert_eq(losses.count, 1);
}

/* The kernel may give a new thread the number of an old one. */
static void is_a_stranger(void *arg)
{
	expect(NOT_OWNER, arg, bizlock_release(arg, KEY("k"), NULL, NULL));
	cr_assert_leq(bizlock_left_ms(arg, KEY("k"), NULL), 0);
}

Test(client_faults, another_thread_does_not_inherit)
{
	bizlock *b = client(NULL);

	in_another_thread(take_k, b);
	for (int i = 0; i < 20; i++)
		in_another_thread(is_a_stranger, b);
}

static void take_as_task(void *arg)
{
	expect(OK, arg, acquire_renewed(arg, "k", .owner = "task-1", .lease_ms = LEASE_MS));
}

Test(client_faults, a_named_owner_outlives_the_thread)
{
	static struct losses losses;
	bizlock *b = client(NULL);

	losses_watch(&losses, b);
	in_another_thread(take_as_task, b);
	outlives_its_first_lease("k");
	outlives_its_first_lease("k");
	expect(OK, b, bizlock_verify(b, KEY("k"), "task-1"));
	cr_assert_eq(losses.count, 0);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
}
