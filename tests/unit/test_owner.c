#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/owner.h"

static const uint8_t nonce[8] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};

static struct bl_owner make(const char *name)
{
	struct bl_owner o;
	struct bl_err err;

	cr_assert_eq(bl_owner_make(&o, name, &err), BIZLOCK_OK);
	return o;
}

static const char *xs(size_t n)
{
	static char text[300];

	memset(text, 'x', n);
	text[n] = '\0';
	return text;
}

Test(owner, process_suffix)
{
	static const struct {
		int64_t pid;
		const char *host, *suffix;
	} rows[] = {
	        {1, "web-1.example.org", "@1.0123456789abcdef@web-1.example.org"},
	        {4194304, "A_z0.9-", "@4194304.0123456789abcdef@A_z0.9-"},
	        {7, NULL, "@7.0123456789abcdef@localhost"},
	        {7, "", "@7.0123456789abcdef@localhost"},
	        {7, "a b@c'\\\xc3\xa1/%", "@7.0123456789abcdef@a_b_c______"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bl_process p;

		bl_process_make(&p, rows[i].pid, nonce, rows[i].host);
		cr_expect_eq(p.pid, rows[i].pid);
		cr_expect_str_eq(p.suffix, rows[i].suffix);
	}
}

Test(owner, host_is_cut_at_64_bytes)
{
	struct bl_process p;
	char want[128];

	for (size_t n = 63; n < 300; n++) {
		bl_process_make(&p, 1, nonce, xs(n));
		snprintf(want, sizeof(want), "@1.0123456789abcdef@%.64s", xs(n));
		cr_assert_str_eq(p.suffix, want);
	}
}

Test(owner, names)
{
	static const struct {
		const char *name;
		bool valid;
	} rows[] = {
	        {"a", true},           {"task-17", true}, {"!#$%&'()*+,-./:;<=>?", true},
	        {"[\\]^_`{|}~", true}, {"17a", true},     {"-1", true},
	        {"1.5", true},         {"\"", true},      {"", false},
	        {"17", false},         {"0", false},      {"a b", false},
	        {" a", false},         {"a@b", false},    {"@", false},
	        {"a\n", false},        {"a\x7f", false},  {"a\x1f", false},
	        {"\xc3\xa1", false},   {"a\x80", false},  {"a\xff", false},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bl_owner o;
		struct bl_err err;
		int rc;

		bl_err_clear(&err);
		rc = bl_owner_make(&o, rows[i].name, &err);
		cr_expect_eq(rc, rows[i].valid ? BIZLOCK_OK : BIZLOCK_INVALID, "\"%s\"",
		             rows[i].name);
		if (rc == BIZLOCK_OK) {
			cr_expect_str_eq(o.name, rows[i].name);
			cr_expect_eq(o.name_len, strlen(rows[i].name));
			cr_expect_eq(o.thread, 0);
		} else {
			cr_expect_eq(memcmp(err.msg, "owner ", 6), 0, "%s", err.msg);
		}
	}
}

Test(owner, name_limit_is_exact)
{
	struct bl_owner o;
	struct bl_err err;

	cr_expect_eq(bl_owner_make(&o, xs(64), &err), BIZLOCK_OK);
	cr_expect_eq(o.name_len, 64);
	cr_expect_eq(bl_owner_make(&o, xs(65), &err), BIZLOCK_INVALID);
	cr_expect_str_eq(err.msg, "owner is too long: 1 to 64 bytes are needed");
	cr_expect_eq(bl_owner_make(&o, xs(299), &err), BIZLOCK_INVALID);
}

Test(owner, null_is_the_calling_thread)
{
	struct bl_owner a = make(NULL), b = make(NULL);
	char tid[32];

	snprintf(tid, sizeof(tid), "%ld", syscall(SYS_gettid));
	cr_expect_gt(a.thread, 0);
	cr_expect_str_eq(a.name, tid);
	cr_expect_eq(a.name_len, strlen(tid));
	cr_expect(bl_owner_equal(&a, &b));
}

static void *make_here(void *arg)
{
	struct bl_err err;

	bl_owner_make(arg, NULL, &err);
	return NULL;
}

/* The second thread mostly gets the kernel id of the first. Serial numbers tell the two apart. */
Test(owner, threads_are_told_apart_by_serial)
{
	struct bl_owner here = make(NULL), one, two;
	pthread_t t;

	cr_assert_eq(pthread_create(&t, NULL, make_here, &one), 0);
	pthread_join(t, NULL);
	cr_assert_eq(pthread_create(&t, NULL, make_here, &two), 0);
	pthread_join(t, NULL);
	cr_expect_not(bl_owner_equal(&here, &one));
	cr_expect_not(bl_owner_equal(&one, &two));

	memcpy(two.name, one.name, sizeof(two.name));
	two.name_len = one.name_len;
	cr_expect_not(bl_owner_equal(&one, &two), "a reused id is another thread");
}

Test(owner, names_are_told_apart_by_bytes)
{
	struct bl_owner a = make("task-1"), b = make("task-1"), c = make("task-2"),
	                d = make("task"), e = make("Task-1"), thread = make(NULL), as_named = a;

	cr_expect(bl_owner_equal(&a, &b));
	cr_expect_not(bl_owner_equal(&a, &c));
	cr_expect_not(bl_owner_equal(&a, &d));
	cr_expect_not(bl_owner_equal(&d, &a));
	cr_expect_not(bl_owner_equal(&a, &e));
	memcpy(as_named.name, thread.name, sizeof(as_named.name));
	as_named.name_len = thread.name_len;
	cr_expect_not(bl_owner_equal(&as_named, &thread));
	cr_expect_not(bl_owner_equal(&thread, &as_named));
}

Test(owner, full_text_fits_the_column_at_its_longest)
{
	char full[BL_OWNER_MAX + 1], want[700];
	struct bl_process p;
	struct bl_owner o;

	bl_process_make(&p, 4711, nonce, "web-1");
	o = make("task-17");
	bl_owner_full(&o, &p, full);
	cr_expect_str_eq(full, "task-17@4711.0123456789abcdef@web-1");

	bl_process_make(&p, INT64_MIN, nonce, xs(200));
	o = make(xs(64));
	bl_owner_full(&o, &p, full);
	snprintf(want, sizeof(want), "%s@-9223372036854775808.0123456789abcdef@%s", xs(64), xs(64));
	cr_expect_str_eq(full, want);
	cr_expect_leq(strlen(want), BL_OWNER_MAX);
}
