/* Only the owner re-enters, renews or releases. Nobody else changes anything. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(ownership, .init = world_begin, .fini = world_end, .timeout = 240);

/* The answers to somebody who does not hold "k". */
struct attempt {
	bizlock *b;
	const char *owner;
	int release, renew, verify, acquire;
	int64_t left_ms;
};

static void try_everything(void *arg)
{
	struct attempt *a = arg;
	bizlock_acquire_opts opts = OPTS(.owner = a->owner);

	a->release = bizlock_release(a->b, KEY("k"), a->owner, NULL);
	a->renew = bizlock_renew(a->b, KEY("k"), a->owner, 60000);
	a->verify = bizlock_verify(a->b, KEY("k"), a->owner);
	a->left_ms = bizlock_left_ms(a->b, KEY("k"), a->owner);
	a->acquire = bizlock_acquire(a->b, KEY("k"), &opts, NULL);
}

#define expect_refused(attempt, before)                                                            \
	do {                                                                                       \
		cr_assert_eq((attempt).release, BIZLOCK_NOT_OWNER);                                \
		cr_assert_eq((attempt).renew, BIZLOCK_NOT_OWNER);                                  \
		cr_assert_eq((attempt).verify, BIZLOCK_NOT_OWNER);                                 \
		cr_assert_leq((attempt).left_ms, 0);                                               \
		cr_assert_eq((attempt).acquire, BIZLOCK_BUSY);                                     \
		cr_assert_str_eq(row_text("k"), (before));                                         \
	} while (0)

Test(ownership, another_thread_is_refused)
{
	struct attempt a = {.b = client(NULL)};
	const char *before;

	expect(OK, a.b, acquire(a.b, "k"));
	before = row_text("k");
	in_another_thread(try_everything, &a);
	expect_refused(a, before);
	expect(OK, a.b, bizlock_release(a.b, KEY("k"), NULL, NULL));
}

Test(ownership, another_name_is_refused)
{
	struct attempt a = {.b = client(NULL), .owner = "task-2"};
	const char *before;

	expect(OK, a.b, acquire_as(a.b, "k", "task-1"));
	before = row_text("k");
	try_everything(&a);
	expect_refused(a, before);
	a.owner = NULL;
	try_everything(&a);
	expect_refused(a, before);
}

Test(ownership, a_thread_and_a_name_are_two_owners)
{
	struct attempt a = {.b = client(NULL), .owner = "task-1"};
	const char *before;

	expect(OK, a.b, acquire(a.b, "k"));
	before = row_text("k");
	try_everything(&a);
	expect_refused(a, before);
}

Test(ownership, another_client_of_the_same_thread_is_refused)
{
	bizlock *b = client(NULL);
	struct attempt a = {.b = client(NULL)};
	const char *before;

	expect(OK, b, acquire(b, "k"));
	before = row_text("k");
	try_everything(&a);
	expect_refused(a, before);
}

Test(ownership, the_same_name_in_another_client_is_another_owner)
{
	bizlock *b = client(NULL);
	struct attempt a = {.b = client(NULL), .owner = "task-1"};
	const char *before;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	before = row_text("k");
	try_everything(&a);
	expect_refused(a, before);
}

Test(ownership, another_process_is_refused)
{
	struct peer peer = peer_start(&world, NULL);
	bizlock *b = client(NULL);
	const char *before;

	expect(OK, b, acquire(b, "k"));
	before = row_text("k");
	expect_answer(NOT_OWNER, peer_release(&peer, "k"));
	expect_answer(NOT_OWNER, peer_renew(&peer, "k"));
	expect_answer(NOT_OWNER, peer_verify(&peer, "k"));
	expect_answer(BUSY, peer_acquire(&peer, "k"));
	cr_assert_str_eq(row_text("k"), before);
	peer_end(&peer);
}

Test(ownership, a_named_owner_may_move_between_threads)
{
	struct attempt a = {.b = client(NULL), .owner = "task-1"};

	expect(OK, a.b, acquire_as(a.b, "k", "task-1"));
	in_another_thread(try_everything, &a);
	cr_assert_eq(a.release, BIZLOCK_OK);
}

Test(ownership, nobody_holds_what_was_never_acquired)
{
	bizlock *b = client(NULL);

	expect(NOT_OWNER, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(NOT_OWNER, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(NOT_OWNER, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
}

/* ---- the owner's name ----------------------------------------------------- */

static void check_owner(const char *owner, const char *name)
{
	char first[65], nonce[65], host[128], more[2];
	long pid;
	int parts = sscanf(owner, "%64[^@]@%ld.%64[0-9a-zA-Z]@%127[^@]%1s", first, &pid, nonce,
	                   host, more);

	cr_assert_eq(parts, 4, "owner: %s", owner);
	cr_assert_eq(pid, (long)getpid(), "owner: %s", owner);
	cr_assert_geq(strlen(nonce), 8, "owner: %s", owner);
	if (name)
		cr_assert_str_eq(first, name);
	else
		cr_assert_eq(strspn(first, "0123456789"), strlen(first), "owner: %s", owner);
}

Test(ownership, an_owner_is_thread_process_nonce_and_host)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "thread"));
	expect(OK, b, acquire_as(b, "named", "task-17"));
	check_owner(row_of(&world, KEY("thread")).owner, NULL);
	check_owner(row_of(&world, KEY("named")).owner, "task-17");
}

Test(ownership, two_clients_of_one_thread_have_two_nonces)
{
	bizlock *a = client(NULL), *b = client(NULL);

	expect(OK, a, acquire(a, "a"));
	expect(OK, b, acquire(b, "b"));
	cr_assert_str_neq(row_of(&world, KEY("a")).owner, row_of(&world, KEY("b")).owner);
}

/* ---- fork ------------------------------------------------------------------- */

static int ignore(void *arg, const bizlock_info *info)
{
	(void)arg;
	(void)info;
	return 0;
}

static int deeper_in_memory(bizlock *b)
{
	return acquire_with(b, BIZLOCK_LOCAL_REENTRY, (struct acquire_args){.id = "k"});
}

/* In a forked child: 0, or the number of the call that was not refused. */
static int use_the_parents_client(bizlock *b)
{
	if (bizlock_acquire(b, KEY("other"), NULL, NULL) != BIZLOCK_MISUSE)
		return 1;
	if (deeper_in_memory(b) != BIZLOCK_MISUSE)
		return 2;
	if (bizlock_release(b, KEY("k"), NULL, NULL) != BIZLOCK_MISUSE)
		return 3;
	if (bizlock_renew(b, KEY("k"), NULL, 0) != BIZLOCK_MISUSE)
		return 4;
	if (bizlock_verify(b, KEY("k"), NULL) != BIZLOCK_MISUSE)
		return 5;
	if (bizlock_each(b, NULL, ignore, NULL) != BIZLOCK_MISUSE)
		return 6;
	if (bizlock_break(b, KEY("k"), 1) != BIZLOCK_MISUSE)
		return 7;
	if (bizlock_left_ms(b, KEY("k"), NULL) > 0)
		return 8;
	if (!bizlock_errmsg(b)[0])
		return 9;
	bizlock_close(b);
	return 0;
}

static int exit_code(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

/* The connections of the clients, as the server numbers them. */
static char *connections(void)
{
	return db_text(world.admin,
	               "SELECT ID FROM information_schema.PROCESSLIST"
	               " WHERE DB = '%s' AND ID <> CONNECTION_ID() ORDER BY ID",
	               world.schema);
}

Test(ownership, a_forked_child_cannot_use_or_harm_the_parents_client)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	char *links_before, *links_after;
	const char *before;
	uint32_t depth;
	pid_t pid;

	expect(OK, b, acquire(b, "k"));
	expect(OK, b, deeper_in_memory(b));
	before = row_text("k");
	links_before = connections();
	pid = fork();
	if (pid == 0)
		_exit(use_the_parents_client(b));
	cr_assert_eq(exit_code(pid), 0);
	links_after = connections();
	cr_assert_str_eq(links_after, links_before, "connections: %s, before: %s", links_after,
	                 links_before);
	cr_assert_str_eq(row_text("k"), before);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(BUSY, stranger, acquire(stranger, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, &depth));
	cr_assert_eq(depth, 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	free(links_before);
	free(links_after);
}

/* The child has the parent's thread id and, in a new container, perhaps its pid. Nevertheless, a
 * client of its own must be a stranger. */
static int be_a_stranger(void)
{
	bizlock *b = client_open(&world, NULL);

	if (acquire(b, "k") != BIZLOCK_BUSY)
		return 1;
	if (acquire(b, "free") != BIZLOCK_OK)
		return 2;
	if (bizlock_release(b, KEY("free"), NULL, NULL) != BIZLOCK_OK)
		return 3;
	bizlock_close(b);
	return 0;
}

Test(ownership, a_forked_child_may_open_a_client_of_its_own)
{
	bizlock *b = client(NULL);
	pid_t pid;

	expect(OK, b, acquire(b, "k"));
	pid = fork();
	if (pid == 0)
		_exit(be_a_stranger());
	cr_assert_eq(exit_code(pid), 0);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
}

/* ---- the same owner, another hold ------------------------------------------------ */

/* A row of the same owner with a larger fence is a later hold. Statements of the earlier hold must
 * not touch it. */
static void a_later_hold_stays(const char *queue)
{
	bizlock *b = client(OPTIONS("queue", queue));
	const char *before;

	for (int what = 0; what < 3; what++) {
		expect(OK, b, acquire(b, "k", .lease_ms = 60000));
		db_run(world.admin, "UPDATE biz_lock SET fence = fence + 100");
		before = row_text("k");
		if (what == 0)
			expect(LOST, b, bizlock_renew(b, KEY("k"), NULL, 90000));
		else if (what == 1)
			expect(LOST, b, acquire(b, "k", .lease_ms = 90000));
		expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
		cr_assert_str_eq(row_text("k"), before, "%d", what);
		db_run(world.admin, "DELETE FROM biz_lock");
	}
}

Test(ownership, a_later_hold_of_the_same_owner_stays)
{
	a_later_hold_stays("auto");
}

Test(ownership, a_later_hold_of_the_same_owner_stays_without_the_queue)
{
	deadlocks_may_happen();
	a_later_hold_stays("off");
}
