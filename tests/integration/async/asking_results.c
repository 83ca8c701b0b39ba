/* What `done` is told: which request has ended, how, and why. */
#include "cr_ask.h"

#include <stddef.h>
#include <stdio.h>

TestSuite(asking_results, .init = world_begin, .fini = world_end, .timeout = 240);

/* A compiler leaves garbage in a hole at the end, and the next field would be read from there. */
_Static_assert(offsetof(bizlock_result, grants) + sizeof(void *) == sizeof(bizlock_result),
               "a struct that grows has no hole at its end");

Test(asking_results, of_a_grant_and_its_release)
{
	bizlock *b = client(NULL);
	uint64_t request;
	struct ask a;

	ask_once(&a, b, "k", "task");
	request = a.request;
	ask_ends(OK, &a);
	cr_assert(a.granted);
	cr_assert_str_eq(a.errmsg, "");
	cr_assert_eq(a.server_error, 0);
	ask_release(&a);
	cr_assert_gt(a.request, request);
	ask_ends(OK, &a);
	cr_assert_not(a.granted);
	cr_assert_str_eq(a.errmsg, "");
	cr_assert_eq(a.server_error, 0);
}

Test(asking_results, of_one_that_is_too_late)
{
	bizlock *b = client(NULL), *other = client(NULL);
	struct ask once, waits;

	expect(OK, other, acquire_as(other, "k", "other"));
	ask_once(&once, b, "k", "task");
	ask_ends(BUSY, &once);
	ask_for(&waits, b, "k", "task", .wait_ms = 100);
	ask_ends(TIMEOUT, &waits);
	cr_assert(strstr(once.errmsg, "acquire: test/k: held by other@"), "%s", once.errmsg);
	cr_assert(strstr(waits.errmsg, "held by other@"), "%s", waits.errmsg);
	cr_assert_not(once.granted || waits.granted);
	cr_assert_eq(once.server_error, 0);
}

Test(asking_results, of_one_that_the_server_refuses)
{
	bizlock *b = client(NULL);
	struct ask a;

	db_run(world.admin, "CREATE TRIGGER refuse BEFORE INSERT ON biz_lock FOR EACH ROW SIGNAL "
	                    "SQLSTATE '45000' SET MESSAGE_TEXT = 'no room for this'");
	ask_once(&a, b, "k", "task");
	ask_ends(DB, &a);
	cr_assert_eq(a.server_error, 1644); /* ER_SIGNAL_EXCEPTION */
	cr_assert(strstr(a.errmsg, "no room for this"), "%s", a.errmsg);
	cr_assert_not(a.granted);
}

/* ---- what `done` may do meanwhile ------------------------------------------------------------ */

static void fails_in_between(void *arg, const bizlock_result *result)
{
	bizlock *b = arg;
	char before[512];

	cr_assert_eq(result->rc, BIZLOCK_BUSY);
	snprintf(before, sizeof(before), "%s", result->message);
	expect(NOT_OWNER, b, bizlock_release(b, KEY("mine"), "task", NULL));
	cr_assert_str_neq(bizlock_errmsg(b), before);
	cr_assert_str_eq(result->message, before);
}

Test(asking_results, a_call_that_fails_does_not_change_them)
{
	bizlock *b = client(NULL), *other = client(NULL);
	bizlock_acquire_opts opts = OPTS(.owner = "task");
	unsigned calls = 0;

	expect(OK, other, acquire_as(other, "k", "other"));
	expect(OK, b, bizlock_acquire_start(b, KEY("k"), &opts, fails_in_between, b, NULL));
	eventually(is_readable(b));
	expect(OK, b, bizlock_dispatch(b, &calls));
	cr_assert_eq(calls, 1);
}
