/* Runs the tests of criterion/criterion.h, each in a child: unit [SUITE]. */
#include "criterion/criterion.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_S 600 /* of each test */
#define SKIPPED 77

static struct criterion_test *first;
static bool failed;

void criterion_add(struct criterion_test *test)
{
	test->next = first;
	first = test;
}

void criterion_failed(const char *file, int line, bool ends, const char *what, const char *why, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: %s:", file, line, what);
	va_start(args, why);
	vfprintf(stderr, why, args);
	va_end(args);
	fputc('\n', stderr);
	failed = true;
	if (ends)
		_exit(1);
}

_Noreturn void criterion_skip(void)
{
	_exit(SKIPPED);
}

static struct criterion_options options_of(const struct criterion_test *test)
{
	struct criterion_options ret = test->options;

	for (const struct criterion_test *t = first; t; t = t->next) {
		if (t->fn || strcmp(t->suite, test->suite) != 0)
			continue;
		ret.init = ret.init ? ret.init : t->options.init;
		ret.fini = ret.fini ? ret.fini : t->options.fini;
	}
	return ret;
}

static _Noreturn void run_here(const struct criterion_test *test)
{
	struct criterion_options o = options_of(test);

	alarm(TIMEOUT_S);
	if (o.init)
		o.init();
	test->fn();
	if (o.fini)
		o.fini();
	_exit(failed ? 1 : 0);
}

static int run(const struct criterion_test *test)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		run_here(test);
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror(test->name);
		exit(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	int passed = 0, skipped = 0, broken = 0;

	for (const struct criterion_test *test = first; test; test = test->next) {
		int code;

		if (!test->fn || (argc > 1 && strcmp(argv[1], test->suite) != 0))
			continue;
		code = run(test);
		if (code != 0 && code != SKIPPED)
			fprintf(stderr, "FAILED: %s::%s (%d)\n", test->suite, test->name, code);
		passed += code == 0;
		skipped += code == SKIPPED;
		broken += code != 0 && code != SKIPPED;
	}
	printf("%d passed, %d failed, %d skipped\n", passed, broken, skipped);
	return broken || !passed;
}
