/* The numbers and their names: no server needed. */
#include <limits.h>

#include "cr_test.h"

TestSuite(errors, .timeout = 60);

Test(errors, every_number_has_a_name_and_a_text)
{
#define CHECK(name, number, text)                                                                  \
	cr_assert_eq(BIZLOCK_##name, number);                                                      \
	cr_assert_str_eq(bizlock_err_name(BIZLOCK_##name), "BIZLOCK_" #name);                      \
	cr_assert_str_eq(bizlock_strerror(BIZLOCK_##name), text);
	BIZLOCK_ERRORS(CHECK)
#undef CHECK
}

Test(errors, the_numbers_are_those_that_were_promised)
{
	static const char *const names[] = {
	        "OK",      "BUSY",  "TIMEOUT",     "CANCELLED", "LOST",    "NOT_OWNER",
	        "UNKNOWN", "CONN",  "DB",          "SCHEMA",    "INVALID", "MISUSE",
	        "LIMIT",   "NOMEM", "UNSUPPORTED", "STALE",
	};

	for (int i = 0; i < (int)(sizeof(names) / sizeof(names[0])); i++)
		cr_assert_str_eq(bizlock_err_name(i) + strlen("BIZLOCK_"), names[i]);
}

Test(errors, an_unknown_number_is_safe)
{
	static const int unknown[] = {-1, 16, 256, 1000, INT_MAX, INT_MIN};

	for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++) {
		cr_assert_str_eq(bizlock_err_name(unknown[i]), "BIZLOCK_?");
		cr_assert_neq(bizlock_strerror(unknown[i]), NULL);
		cr_assert_neq(bizlock_strerror(unknown[i])[0], '\0');
	}
}

Test(errors, a_number_of_a_later_version_has_the_text_of_its_primary_number)
{
	int later = 3 << 8 | BIZLOCK_BUSY;

	cr_assert_eq(BIZLOCK_PRIMARY(later), BIZLOCK_BUSY);
	cr_assert_str_eq(bizlock_err_name(later), "BIZLOCK_BUSY");
	cr_assert_str_eq(bizlock_strerror(later), bizlock_strerror(BIZLOCK_BUSY));
}

Test(errors, the_linked_library_is_the_one_of_the_header)
{
	cr_assert_str_eq(bizlock_version(), BIZLOCK_VERSION);
}

Test(errors, without_a_client_there_is_still_a_message)
{
	cr_assert_neq(bizlock_errmsg(NULL), NULL);
	cr_assert_eq(bizlock_new(NULL), BIZLOCK_INVALID);
	cr_assert_neq(bizlock_errmsg(NULL)[0], '\0');
}

Test(errors, a_client_that_did_nothing_wrong_has_no_message)
{
	bizlock *b = NULL;

	cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
	cr_assert_str_eq(bizlock_errmsg(b), "");
	bizlock_close(b);
	bizlock_close(NULL);
}

static void read_message(void *arg)
{
	cr_assert_str_eq(bizlock_errmsg(arg), "");
}

Test(errors, a_message_is_of_the_thread_that_failed)
{
	bizlock *b = NULL;

	cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
	cr_assert_eq(bizlock_set(b, "no such option", "1"), BIZLOCK_INVALID);
	expect_message(b, "no such option");
	in_another_thread(read_message, b);
	expect_message(b, "no such option");
	bizlock_close(b);
}

/* A message about one client is not told about the next one, even if that gets the same memory. */
Test(errors, a_message_is_of_the_client_that_failed)
{
	bizlock *a = NULL, *b = NULL;

	cr_assert_eq(bizlock_new(&a), BIZLOCK_OK);
	cr_assert_eq(bizlock_set(a, "no such option", "1"), BIZLOCK_INVALID);
	bizlock_close(a);
	cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
	cr_assert_str_eq(bizlock_errmsg(b), "");
	bizlock_close(b);
}
