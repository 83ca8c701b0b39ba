/* What tests/unit/ uses of Criterion, for systems that have no Criterion: each test is run in a
 * child by runner.c. */
#ifndef TEST_ELSEWHERE_CRITERION_H
#define TEST_ELSEWHERE_CRITERION_H

#include <stdbool.h>
#include <string.h>

struct criterion_options {
	void (*init)(void), (*fini)(void);
	double timeout; /* is not used: emulators take longer */
	bool none;      /* lets a list of options begin */
};

struct criterion_test {
	const char *suite, *name;
	void (*fn)(void); /* NULL: what follows is for all tests of the suite */
	struct criterion_options options;
	struct criterion_test *next;
};

void criterion_add(struct criterion_test *test);
__attribute__((format(printf, 5, 6))) void criterion_failed(const char *file, int line, bool ends,
                                                            const char *what, const char *why, ...);
_Noreturn void criterion_skip(void);

#define CRITERION_ADD(suite_, name_, fn_, ...)                                                     \
	__attribute__((constructor)) static void add_##suite_##_##name_(void)                      \
	{                                                                                          \
		static struct criterion_test test = {                                              \
		        .suite = #suite_, .name = #name_, .fn = (fn_), .options = {__VA_ARGS__}};  \
		criterion_add(&test);                                                              \
	}

#define Test(suite_, name_, ...)                                                                   \
	static void run_##suite_##_##name_(void);                                                  \
	CRITERION_ADD(suite_, name_, run_##suite_##_##name_, .none = true, ##__VA_ARGS__)          \
	static void run_##suite_##_##name_(void)

#define TestSuite(suite_, ...)                                                                     \
	CRITERION_ADD(suite_, all, NULL, __VA_ARGS__)                                              \
	typedef int criterion_semicolon_##suite_

#define CRITERION_CHECK(ends, what, cond, ...)                                                     \
	((cond) ? (void)0 : criterion_failed(__FILE__, __LINE__, ends, what, " " __VA_ARGS__))

#define cr_assert(cond, ...) CRITERION_CHECK(true, #cond, cond, ##__VA_ARGS__)
#define cr_expect(cond, ...) CRITERION_CHECK(false, #cond, cond, ##__VA_ARGS__)
#define cr_assert_not(cond, ...) CRITERION_CHECK(true, "not " #cond, !(cond), ##__VA_ARGS__)
#define cr_expect_not(cond, ...) CRITERION_CHECK(false, "not " #cond, !(cond), ##__VA_ARGS__)
#define cr_assert_null(p, ...) CRITERION_CHECK(true, #p " is NULL", (p) == NULL, ##__VA_ARGS__)
#define cr_expect_null(p, ...) CRITERION_CHECK(false, #p " is NULL", (p) == NULL, ##__VA_ARGS__)
#define cr_assert_not_null(p, ...)                                                                 \
	CRITERION_CHECK(true, #p " is not NULL", (p) != NULL, ##__VA_ARGS__)
#define cr_expect_not_null(p, ...)                                                                 \
	CRITERION_CHECK(false, #p " is not NULL", (p) != NULL, ##__VA_ARGS__)
#define cr_assert_eq(a, b, ...) CRITERION_CHECK(true, #a " == " #b, (a) == (b), ##__VA_ARGS__)
#define cr_expect_eq(a, b, ...) CRITERION_CHECK(false, #a " == " #b, (a) == (b), ##__VA_ARGS__)
#define cr_assert_neq(a, b, ...) CRITERION_CHECK(true, #a " != " #b, (a) != (b), ##__VA_ARGS__)
#define cr_expect_neq(a, b, ...) CRITERION_CHECK(false, #a " != " #b, (a) != (b), ##__VA_ARGS__)
#define cr_assert_gt(a, b, ...) CRITERION_CHECK(true, #a " > " #b, (a) > (b), ##__VA_ARGS__)
#define cr_expect_gt(a, b, ...) CRITERION_CHECK(false, #a " > " #b, (a) > (b), ##__VA_ARGS__)
#define cr_assert_geq(a, b, ...) CRITERION_CHECK(true, #a " >= " #b, (a) >= (b), ##__VA_ARGS__)
#define cr_expect_geq(a, b, ...) CRITERION_CHECK(false, #a " >= " #b, (a) >= (b), ##__VA_ARGS__)
#define cr_assert_lt(a, b, ...) CRITERION_CHECK(true, #a " < " #b, (a) < (b), ##__VA_ARGS__)
#define cr_expect_lt(a, b, ...) CRITERION_CHECK(false, #a " < " #b, (a) < (b), ##__VA_ARGS__)
#define cr_assert_leq(a, b, ...) CRITERION_CHECK(true, #a " <= " #b, (a) <= (b), ##__VA_ARGS__)
#define cr_expect_leq(a, b, ...) CRITERION_CHECK(false, #a " <= " #b, (a) <= (b), ##__VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)                                                                \
	CRITERION_CHECK(true, #a " is text " #b, strcmp((a), (b)) == 0, ##__VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)                                                                \
	CRITERION_CHECK(false, #a " is text " #b, strcmp((a), (b)) == 0, ##__VA_ARGS__)
#define cr_assert_str_empty(a, ...)                                                                \
	CRITERION_CHECK(true, #a " is empty", (a)[0] == '\0', ##__VA_ARGS__)
#define cr_expect_str_empty(a, ...)                                                                \
	CRITERION_CHECK(false, #a " is empty", (a)[0] == '\0', ##__VA_ARGS__)
#define cr_assert_fail(...) CRITERION_CHECK(true, "reached", false, ##__VA_ARGS__)
#define cr_skip_test(...) criterion_skip()

#endif
