#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/hosts.h"

Test(hosts, table)
{
	static const struct {
		const char *entry, *name;
		uint32_t port;
	} rows[] = {
	        {"db1", "db1", 0},
	        {"db1:3307", "db1", 3307},
	        {"db1:65535", "db1", 65535},
	        {"db1:00001", "db1", 1},
	        {"192.0.2.1:3306", "192.0.2.1", 3306},
	        {"::1", "::1", 0},
	        {"2001:db8::1", "2001:db8::1", 0},
	        {"[::1]", "::1", 0},
	        {"[::1]:3308", "::1", 3308},
	        {"[db1]:3308", "db1", 3308},
	};
	size_t count = sizeof(rows) / sizeof(rows[0]);
	char list[512] = "";
	struct bl_err err;
	const char *at = list;

	for (size_t i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s", i ? "," : "",
		         rows[i].entry);
	cr_assert_eq(bl_hosts_check(list, &err), BIZLOCK_OK);
	cr_expect(bl_hosts_several(list));
	for (size_t i = 0; i < count; i++) {
		struct bl_host host = bl_hosts_next(&at);

		cr_expect_str_eq(host.name, rows[i].name);
		cr_expect_eq(host.port, rows[i].port, "%s", rows[i].entry);
	}
	cr_expect_str_empty(at);
}

Test(hosts, no_list_is_the_default_host)
{
	const char *at = NULL;
	struct bl_host host = bl_hosts_next(&at);

	cr_expect_str_empty(host.name);
	cr_expect_null(at);
	cr_expect_not(bl_hosts_several(NULL));
}

/* A part that is passed over leads to another server than was meant. */
Test(hosts, what_is_not_understood_is_refused)
{
	static const char *const rows[] = {
	        "",          ",",         "db1,",        ",db1",     "db1,,db2", ":3306",
	        "db1:",      "db1:0",     "db1:65536",   "db1:+1",   "db1:1 ",   "db1:000001",
	        "db1:http",  "[]",        "[]:3306",     "[",        "[::1",     "[::1,db1",
	        "[::1]:",    "[::1]3308", "[::1] 3308",  "[::1].db", "[::1]]",   "[[::1]",
	        "::1]:3308", "a[b",       "db1,[::1]:0",
	};
	struct bl_err err;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		cr_expect_eq(bl_hosts_check(rows[i], &err), BIZLOCK_INVALID, "%s", rows[i]);
		cr_expect_eq(strncmp(err.msg, "option host: ", 13), 0, "%s", err.msg);
	}
}

Test(hosts, a_name_has_up_to_255_bytes)
{
	const char *at;
	struct bl_err err;
	char list[300];

	memset(list, 'h', sizeof(list));
	memcpy(list + 255, ":33", 4);
	cr_assert_eq(bl_hosts_check(list, &err), BIZLOCK_OK);
	at = list;
	cr_expect_eq(strlen(bl_hosts_next(&at).name), 255);
	memcpy(list + 255, "h:33", 5);
	cr_expect_eq(bl_hosts_check(list, &err), BIZLOCK_INVALID);
}
