/* Where options come from, and which source comes first. */
#define _GNU_SOURCE 1
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cr_test.h"

TestSuite(options, .init = world_begin, .fini = world_end, .timeout = 240);

/* A client that gets all other options from elsewhere. */
static bizlock *bare_client(const char *file)
{
	bizlock *b = NULL;

	cr_assert_eq(bizlock_new(&b), BIZLOCK_OK);
	expect(OK, b, bizlock_set(b, "defaults_file", file));
	return b;
}

/* The lease that b grants by default. */
static uint32_t default_lease(bizlock *b)
{
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, bizlock_open(b));
	expect(OK, b, acquire(b, "k", .grant = &grant));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	bizlock_close(b);
	return grant.lease_ms;
}

/* An option file whose [client] leads to the server; `rest` follows it. */
static void write_options(char path[32], const char *database, const char *rest)
{
	const struct server *at = &world.at;
	char text[2048];
	int n = snprintf(text, sizeof(text), "[client]\nuser = \"%s\"\npassword='%s'\n", at->user,
	                 at->password);

	if (at->socket[0])
		n += snprintf(text + n, sizeof(text) - (size_t)n, "socket=%s\n", at->socket);
	else
		n += snprintf(text + n, sizeof(text) - (size_t)n, "host=%s\nport=%u\n", at->host,
		              at->port);
	snprintf(text + n, sizeof(text) - (size_t)n, "database=%s\n%s", database, rest);
	write_file(path, text);
}

Test(options, the_client_group_of_a_file_is_read)
{
	char path[32];

	write_options(path, world.schema, "[mysqld]\ndatabase=wrong\n");
	cr_assert_eq(default_lease(bare_client(path)), 30000);
	unlink(path);
}

Test(options, the_own_group_comes_before_the_client_group)
{
	char path[32], rest[256];

	snprintf(rest, sizeof(rest), "[bizlock]\nlease-ms=4000\ndatabase=%s\n", world.schema);
	write_options(path, "wrong", rest);
	cr_assert_eq(default_lease(bare_client(path)), 4000);
	unlink(path);
}

/* The order of the groups in the file does not matter. */
Test(options, the_order_of_the_groups_does_not_matter)
{
	char path[32], rest[256];

	snprintf(rest, sizeof(rest), "[bizlock]\ndatabase=%s\n[client]\ndatabase=wrong\n",
	         world.schema);
	write_options(path, "wrong", rest);
	cr_assert_eq(default_lease(bare_client(path)), 30000);
	unlink(path);
}

Test(options, the_environment_comes_before_files_and_set_before_all)
{
	bizlock *b;
	char path[32];

	write_options(path, world.schema, "[bizlock]\nlease_ms = 4000 # a comment\n");
	setenv("BIZLOCK_LEASE_MS", "5000", 1);
	cr_assert_eq(default_lease(bare_client(path)), 5000);
	b = bare_client(path);
	expect(OK, b, bizlock_set(b, "lease_ms", "6000"));
	cr_assert_eq(default_lease(b), 6000);
	unsetenv("BIZLOCK_LEASE_MS");
	cr_assert_eq(default_lease(bare_client(path)), 4000);
	unlink(path);
}

Test(options, another_group_may_be_chosen)
{
	bizlock *b;
	char path[32];

	write_options(path, world.schema, "[bizlock]\nlease_ms=4000\n[shop]\nlease_ms=7000\n");
	b = bare_client(path);
	expect(OK, b, bizlock_set(b, "defaults_group", "shop"));
	cr_assert_eq(default_lease(b), 7000);
	unlink(path);
}

/* The order in the file does not matter. */
Test(options, groups_with_the_suffix_come_before_those_without)
{
	bizlock *b;
	char path[32];

	write_options(path, world.schema,
	              "[bizlock_b]\nlease_ms=8000\n[client_b]\nlease_ms=6000\nunknown=1\n"
	              "[client_a]\nlease_ms=5000\n[bizlock]\nlease_ms=7000\n");
	cr_assert_eq(default_lease(bare_client(path)), 7000);
	b = bare_client(path);
	expect(OK, b, bizlock_set(b, "defaults_group_suffix", "_a"));
	cr_assert_eq(default_lease(b), 5000);
	b = bare_client(path);
	expect(OK, b, bizlock_set(b, "defaults_group_suffix", "_b"));
	cr_assert_eq(default_lease(b), 8000);
	unlink(path);
}

Test(options, a_bad_value_in_the_environment_is_named)
{
	setenv("BIZLOCK_LEASE_MS", "soon", 1);
	expect_open(INVALID, &world, NULL, "lease_ms");
	setenv("BIZLOCK_LEASE_MS", "99", 1);
	expect_open(INVALID, &world, NULL, "100");
}

Test(options, a_bad_value_in_a_file_is_named)
{
	bizlock *b;
	char path[32];

	write_options(path, world.schema, "[bizlock]\nmax_connections=0\n");
	b = bare_client(path);
	expect(INVALID, b, bizlock_open(b));
	expect_message(b, "max_connections");
	bizlock_close(b);
	unlink(path);
}

Test(options, a_file_that_was_asked_for_must_be_there)
{
	bizlock *b = client_new(&world, OPTIONS("defaults_file", "/no/such/file"));

	expect(INVALID, b, bizlock_open(b));
	expect_message(b, "/no/such/file");
	bizlock_close(b);
}

/* Nor are the usual files read: here they are not there. */
Test(options, no_file_at_all_may_be_read)
{
	static const char *const none[] = {"/dev/null", ""};
	char home[] = "/tmp/bizlock-home-XXXXXX", path[64];
	FILE *file;

	cr_assert(mkdtemp(home));
	snprintf(path, sizeof(path), "%s/.my.cnf", home);
	file = fopen(path, "w");
	cr_assert(file && fputs("[bizlock]\nno_such_option=1\n", file) >= 0 && fclose(file) == 0);
	setenv("HOME", home, 1);
	expect_open(INVALID, &world, NULL, "no_such_option");
	for (int i = 0; i < 2; i++) {
		bizlock *b = client_new(&world, OPTIONS("defaults_file", none[i]));

		expect(OK, b, bizlock_open(b));
		works(b);
		bizlock_close(b);
		setenv("BIZLOCK_DEFAULTS_FILE", none[i], 1);
		works(client(NULL));
		unsetenv("BIZLOCK_DEFAULTS_FILE");
	}
	unlink(path);
	rmdir(home);
}
