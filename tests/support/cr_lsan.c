/* Criterion's runner leaks a little when it runs tests in parallel. No test runs in the runner
 * itself, so LeakSanitizer need not look there. It looks in the processes of the tests. */
#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <unistd.h>

static pid_t runner;

ReportHook(PRE_ALL)(struct criterion_test_set *tests)
{
	(void)tests;
	runner = getpid();
}

/* Asked by the sanitizer when a process ends. */
int __lsan_is_turned_off(void);

int __lsan_is_turned_off(void)
{
	return getpid() == runner;
}
