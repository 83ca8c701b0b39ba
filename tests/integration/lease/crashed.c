/* Holders that are killed, on a host where others can see that they are gone. */
#define _GNU_SOURCE 1
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_ask.h"
#include "cr_shared.h"
#include "keyset.h"

#define TRIES 5
#define PROMISED_MS 100

static char dir[] = "/dev/shm/bizlock-test-XXXXXX", other[] = "/dev/shm/bizlock-test-XXXXXX";

#define HERE OPTIONS("runtime_dir", dir, "lease_ms", "1200000")

static void begin(void)
{
	world_begin();
	cr_assert(mkdtemp(dir) && mkdtemp(other));
}

/* The name of one file in `of`; "": there is none. */
static const char *file_in(const char *of)
{
	static char name[256];
	DIR *d = opendir(of);
	struct dirent *entry;

	*name = '\0';
	while (d && (entry = readdir(d)) != NULL)
		if (*entry->d_name != '.')
			snprintf(name, sizeof(name), "%s", entry->d_name);
	if (d)
		closedir(d);
	return name;
}

static const char *path_in(const char *of, const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", of, name);
	return path;
}

/* The file of the client that holds "k". */
static const char *file_of_k(void)
{
	struct row row = row_of(&world, KEY("k"));
	char *nonce = strchr(row.owner, '.') + 1;

	*strchr(nonce, '@') = '\0';
	return path_in(dir, nonce);
}

static void remove_dir(const char *of)
{
	while (*file_in(of))
		if (unlink(path_in(of, file_in(of))) != 0)
			break;
	rmdir(of);
}

static void end(void)
{
	world_end();
	remove_dir(dir);
	remove_dir(other);
}

TestSuite(crashed, .init = begin, .fini = end, .timeout = 240);

/* ---- the holder, another process ----------------------------------------------------------- */

struct holder {
	pid_t pid, child; /* child: what it forked, or 0 */
};

typedef pid_t hold_fn(bizlock *b);

static struct holder hold_with(const char *const *options, hold_fn *fn)
{
	struct holder h;
	int said[2];

	cr_assert_eq(pipe(said), 0);
	h.pid = fork();
	if (h.pid == 0) {
		pid_t child;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(said[1], 0); /* the one that stays open */
		child = fn(client_open(&world, options));
		if (write(0, &child, sizeof(child)) != sizeof(child))
			_exit(1);
		for (;;)
			pause();
	}
	close(said[1]);
	cr_assert_eq(read(said[0], &h.child, sizeof(h.child)), sizeof(h.child),
	             "the holder has failed");
	close(said[0]);
	return h;
}

static void kill_holder(const struct holder *h)
{
	kill(h->pid, SIGKILL);
	waitpid(h->pid, NULL, 0);
}

static void take(bizlock *b, const char *id, bizlock_acquire_opts o)
{
	must_work(b, bizlock_acquire(b, KEY(id), &o, NULL), "the holder's acquire");
}

static pid_t hold_k(bizlock *b)
{
	take(b, "k", OPTS(.lease_ms = LEASE_MS));
	return 0;
}

static struct holder hold(const char *const *options)
{
	return hold_with(options, hold_k);
}

/* A holder with these options is killed; a client with those finds the lock held. */
static void expect_lease(const char *const *holders, const char *const *contenders)
{
	struct holder h = hold(holders);
	bizlock *b = client_open(&world, contenders);

	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
	bizlock_close(b);
}

/* The lock is free for a client of this host, because its holder has crashed. */
static void expect_freed(bizlock *b, const char *id)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, id, .grant = &grant));
	cr_assert(grant.flags & BIZLOCK_TOOK_OVER);
}

/* ---- it is followed at once ------------------------------------------------------------------ */

/* How long a program needs from its start to its lock. */
static int64_t start_ms(bizlock_grant *ret)
{
	int64_t began = now_ms(), took;
	bizlock *b = client_open(&world, HERE);

	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .grant = ret));
	took = now_ms() - began;
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
	return took;
}

/* As when a supervisor starts it again. A busy machine is slow to open any client, so the lock of a
 * holder that was killed is compared with a lock that is free. */
Test(crashed, killed_and_started_again_it_has_its_lock_at_once)
{
	int64_t best = INT64_MAX, best_free = INT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		bizlock_grant grant = BIZLOCK_GRANT_INIT;
		struct holder h = hold(HERE);
		int64_t took;

		kill_holder(&h);
		took = start_ms(&grant);
		best = took < best ? took : best;
		cr_assert(grant.flags & BIZLOCK_TOOK_OVER);
		took = start_ms(NULL);
		best_free = took < best_free ? took : best_free;
	}
	fprintf(stderr, "killed and started again: %lld ms; with a free lock: %lld ms\n",
	        (long long)best, (long long)best_free);
	cr_assert_lt(best, best_free + PROMISED_MS);
}

Test(crashed, a_call_that_waits_for_nothing_gets_its_lock)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);

	expect(BUSY, b, acquire(b, "k"));
	kill_holder(&h);
	expect_freed(b, "k");
}

Test(crashed, a_waiter_that_sleeps_gets_its_lock)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);
	struct call c;

	call_start(&c, b, "k", .wait_ms = PATIENCE_MS);
	eventually(doorbell_waiters(&world) == 1);
	kill_holder(&h);
	expect(OK, b, call_join(&c));
}

Test(crashed, without_doorbells_too)
{
	struct holder h = hold(OPTIONS("runtime_dir", dir, "lease_ms", "1200000", "queue", "off"));
	bizlock *b = client(OPTIONS("runtime_dir", dir, "queue", "off"));

	kill_holder(&h);
	expect_freed(b, "k");
}

static pid_t share_k(bizlock *b)
{
	take(b, "k", OPTS(.lease_ms = LEASE_MS, .flags = BIZLOCK_SHARED, .owner = "a"));
	take(b, "k", OPTS(.lease_ms = LEASE_MS, .flags = BIZLOCK_SHARED, .owner = "b"));
	return 0;
}

Test(crashed, sharers_leave_with_their_process)
{
	struct holder h = hold_with(HERE, share_k);
	bizlock *b = client(HERE);

	expect(BUSY, b, acquire(b, "k"));
	kill_holder(&h);
	expect_freed(b, "k");
}

static pid_t limit_k(bizlock *b)
{
	take(b, "k", OPTS(.lease_ms = LEASE_MS, .flags = BIZLOCK_SHARED, .limit = 1, .owner = "a"));
	return 0;
}

Test(crashed, the_slot_of_a_limit_is_free)
{
	struct holder h = hold_with(HERE, limit_k);
	bizlock *b = client(HERE);

	expect(BUSY, b, try_as(b, "x", S, 1, NULL));
	kill_holder(&h);
	expect(OK, b, try_as(b, "x", S, 1, NULL));
}

Test(crashed, a_sharer_follows_an_exclusive_holder)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);

	expect(BUSY, b, try_as(b, "x", S, 0, NULL));
	kill_holder(&h);
	expect(OK, b, try_as(b, "x", S, 0, NULL));
}

static pid_t hold_set(bizlock *b)
{
	struct keyset s;

	keyset_make(&s, 3, "s");
	must_work(b, keyset_acquire(b, &s, .lease_ms = LEASE_MS), "the holder's set");
	return 0;
}

Test(crashed, a_set_is_free)
{
	struct holder h = hold_with(HERE, hold_set);
	bizlock *b = client(HERE);
	struct keyset s;

	keyset_make(&s, 3, "s");
	expect(BUSY, b, keyset_acquire(b, &s));
	kill_holder(&h);
	keyset_forget(&s);
	expect(OK, b, keyset_acquire(b, &s));
	for (size_t i = 0; i < s.n; i++)
		cr_assert(s.grants[i].flags & BIZLOCK_TOOK_OVER);
}

Test(crashed, a_request_gets_its_lock)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);
	struct ask a;

	ask_once(&a, b, "k", "task");
	dispatch_until(b, a.calls == 1);
	cr_assert_eq(a.rc, BIZLOCK_BUSY);
	kill_holder(&h);
	ask_for(&a, b, "k", "task", .wait_ms = PATIENCE_MS);
	dispatch_until(b, a.calls == 1);
	cr_assert_eq(a.rc, BIZLOCK_OK);
}

/* ---- never while a process of it lives ---------------------------------------------------------
 */

static pid_t hold_and_fork(bizlock *b)
{
	pid_t child;

	hold_k(b);
	child = fork();
	if (child)
		return child;
	for (;;)
		pause();
}

Test(crashed, a_forked_child_keeps_it)
{
	struct holder h = hold_with(HERE, hold_and_fork);
	bizlock *b = client(HERE);

	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
	steadily(acquire(b, "k") == BIZLOCK_BUSY, 300);
	kill(h.child, SIGKILL);
	eventually(acquire(b, "k") == BIZLOCK_OK);
}

static pid_t hold_and_fork_closing(bizlock *b)
{
	pid_t child;

	hold_k(b);
	child = fork();
	if (child)
		return waitpid(child, NULL, 0);
	bizlock_close(b);
	_exit(0);
}

Test(crashed, a_child_that_closes_its_client_takes_nothing_away)
{
	struct holder h = hold_with(HERE, hold_and_fork_closing);
	bizlock *b = client(HERE);

	expect(BUSY, b, acquire(b, "k"));
	cr_assert_eq(access(file_of_k(), F_OK), 0);
	kill_holder(&h);
	expect_freed(b, "k");
}

#define FILES_MAX 1024 /* more than a holder has */

static pid_t hold_and_close_files(bizlock *b)
{
	hold_k(b);
	for (int fd = 1; fd < FILES_MAX; fd++) /* glibc has closefrom() since 2.34 only */
		close(fd);
	return 0;
}

/* As daemons do. Its connections go, too. */
Test(crashed, a_program_that_closes_all_files_keeps_it)
{
	struct holder h = hold_with(HERE, hold_and_close_files);
	bizlock *b = client(HERE);

	steadily(acquire(b, "k") == BIZLOCK_BUSY, 300);
	kill_holder(&h);
	expect_freed(b, "k");
}

Test(crashed, a_holder_that_is_stopped_keeps_it)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);

	kill(h.pid, SIGSTOP);
	steadily(acquire(b, "k") == BIZLOCK_BUSY, 300);
	kill_holder(&h);
	expect_freed(b, "k");
}

/* A new process that gets the number `pid`; false: it could not be had. */
static bool fork_as(pid_t pid)
{
	for (int i = 0; i < 100; i++) {
		FILE *last = fopen("/proc/sys/kernel/ns_last_pid", "w");
		pid_t child;

		if (!last || fprintf(last, "%d", pid - 1) < 0 || fclose(last) != 0)
			return false;
		child = fork();
		if (child == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		if (child == pid)
			return true;
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	}
	return false;
}

Test(crashed, another_process_with_its_number_does_not_pass_for_it)
{
	struct holder h = hold(HERE);
	bizlock *b;

	kill_holder(&h);
	not_here_unless(fork_as(h.pid), "only root chooses the numbers of processes");
	b = client(HERE);
	expect_freed(b, "k");
	kill(h.pid, SIGKILL);
}

/* ---- where the lease decides
 * --------------------------------------------------------------------- */

Test(crashed, another_directory_proves_nothing)
{
	expect_lease(HERE, OPTIONS("runtime_dir", other));
}

Test(crashed, an_option_switches_it_off)
{
	expect_lease(OPTIONS("runtime_dir", "", "lease_ms", "1200000"), HERE);
	cr_assert_str_eq(file_in(dir), "");
}

Test(crashed, an_option_switches_it_off_for_the_contender)
{
	expect_lease(HERE, OPTIONS("runtime_dir", ""));
}

Test(crashed, a_directory_that_cannot_be_used_is_done_without)
{
	expect_lease(OPTIONS("runtime_dir", "/proc/none", "lease_ms", "1200000"),
	             OPTIONS("runtime_dir", "/proc/none"));
}

Test(crashed, a_directory_that_anybody_may_change_is_not_trusted)
{
	cr_assert_eq(chmod(dir, 0777), 0);
	expect_lease(HERE, HERE);
	cr_assert_str_eq(file_in(dir), "");
}

Test(crashed, a_directory_of_another_user_is_not_trusted)
{
	not_here_unless(geteuid() == 0, "only root gives files away");
	cr_assert_eq(chown(dir, 12345, 12345), 0);
	expect_lease(HERE, HERE);
	cr_assert_str_eq(file_in(dir), "");
}

/* Whoever may write in the directory can make a file with anybody's nonce. */
Test(crashed, a_file_of_another_user_is_not_trusted)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);
	const char *file = file_of_k();

	not_here_unless(geteuid() == 0, "only root gives files away");
	kill_holder(&h);
	cr_assert_eq(chown(file, 12345, 12345), 0);
	expect(BUSY, b, acquire(b, "k"));
	cr_assert_eq(chown(file, 0, 0), 0);
	expect_freed(b, "k");
}

/* A backup, a snapshot, the image of a container. */
Test(crashed, a_copy_proves_nothing)
{
	struct holder h = hold(HERE);
	char command[1024];
	bizlock *b;

	snprintf(command, sizeof(command), "cp -a %s/* %s/", dir, other);
	cr_assert_eq(system(command), 0);
	b = client(OPTIONS("runtime_dir", other));
	expect(BUSY, b, acquire(b, "k"));
	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
}

static pid_t hold_resting(bizlock *b)
{
	take(b, "k", OPTS(.lease_ms = LEASE_MS, .min_hold_ms = LEASE_MS));
	return 0;
}

Test(crashed, a_lock_that_has_to_rest_rests)
{
	struct holder h = hold_with(HERE, hold_resting);
	bizlock *b = client(HERE);

	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
}

static pid_t hold_exported(bizlock *b)
{
	char text[BIZLOCK_EXPORT_MAX];

	hold_k(b);
	must_work(b, bizlock_export(b, KEY("k"), NULL, text, sizeof(text)), "export");
	return 0;
}

Test(crashed, an_exported_hold_outlives_its_exporter)
{
	struct holder h = hold_with(HERE, hold_exported);
	bizlock *b = client(HERE);

	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
}

Test(crashed, a_hold_that_is_fenced_stays_until_the_transaction_ends)
{
	struct holder h = hold(HERE);
	bizlock *b = client(HERE);

	db_run(world.admin, "BEGIN");
	db_run(world.admin, "SELECT * FROM biz_lock FOR UPDATE");
	kill_holder(&h);
	expect(BUSY, b, acquire(b, "k"));
	db_run(world.admin, "COMMIT");
	expect_freed(b, "k");
}

/* ---- its file ----------------------------------------------------------------------------------
 */

Test(crashed, a_client_that_is_closed_leaves_no_file)
{
	bizlock *b = client_open(&world, HERE);

	cr_assert_str_neq(file_in(dir), "");
	bizlock_close(b);
	cr_assert_str_eq(file_in(dir), "");
}

Test(crashed, a_relative_name_is_refused)
{
	bizlock *b = client_new(&world, NULL);

	expect(INVALID, b, bizlock_set(b, "runtime_dir", "run"));
	expect_message(b, "begin with a '/'");
	bizlock_close(b);
}
