#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/optfile.h"

/* A folder of its own for each test, and what the last reading brought. */
static char dir[200];
static struct bl_buf seen;
static struct bl_err err;

static const char *const wanted[] = {"client", "bizlock", NULL};

static void set_up(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.150s/bizlock-optfile-XXXXXX", tmp ? tmp : "/tmp");
	cr_assert_not_null(mkdtemp(dir));
	seen = (struct bl_buf)BL_BUF_INIT(1 << 20);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st, (void)type, (void)at;
	return remove(path);
}

static void tear_down(void)
{
	bl_buf_free(&seen);
	nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

TestSuite(optfile, .init = set_up, .fini = tear_down);

/* The path of a file in the folder. Valid for four calls. */
static const char *path_of(const char *name)
{
	static char paths[4][500];
	static unsigned turn;
	char *ret = paths[turn++ % 4];

	snprintf(ret, sizeof(paths[0]), "%s/%s", dir, name);
	return ret;
}

static void write_bytes(const char *name, const char *text, size_t len)
{
	FILE *f = fopen(path_of(name), "w");

	cr_assert_not_null(f);
	cr_assert_eq(fwrite(text, 1, len, f), len);
	cr_assert_eq(fclose(f), 0);
	cr_assert_eq(chmod(path_of(name), 0600), 0);
}

/* Each % in the text stands for the folder. */
static void write_file(const char *name, const char *text)
{
	struct bl_buf b = BL_BUF_INIT(1 << 20);

	for (; *text; text++) {
		if (*text == '%')
			bl_buf_adds(&b, dir);
		else
			bl_buf_add(&b, text, 1);
	}
	bl_buf_adds(&b, "");
	write_bytes(name, b.data, b.len);
	bl_buf_free(&b);
}

/* Writes entries down as "group.key=<value>" or "group.key", one a line. */
static int note_entry(void *arg, const char *group, const char *key, const char *value,
                      struct bl_err *e)
{
	struct bl_buf *b = arg;

	if (strcmp(key, "stop") == 0)
		return bl_err_set(e, BIZLOCK_LIMIT, "told to stop");
	bl_buf_addf(b, "%s.%s", group, key);
	if (value)
		bl_buf_addf(b, "=<%s>", value);
	bl_buf_adds(b, "\n");
	return BIZLOCK_OK;
}

static int read_it(const char *name, bool must_exist)
{
	bl_buf_reset(&seen);
	bl_buf_adds(&seen, "");
	bl_err_clear(&err);
	return bl_optfile_read(path_of(name), must_exist, wanted, note_entry, &seen, &err);
}

static void expect_entries(const char *text, const char *entries)
{
	write_file("my.cnf", text);
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_OK, "%s", err.msg);
	cr_expect_str_eq(seen.data, entries);
}

/* `msg` without the folder that begins it. */
static void expect_invalid(const char *name, const char *msg)
{
	char want[600];

	cr_expect_eq(read_it(name, true), BIZLOCK_INVALID);
	snprintf(want, sizeof(want), "%s", msg);
	if (msg[0] == '/')
		snprintf(want, sizeof(want), "%s%s", dir, msg);
	cr_expect_str_eq(err.msg, want);
}

Test(optfile, takes_wanted_groups_in_file_order)
{
	expect_entries("[mysqld]\nuser=no\n[bizlock]\nuser=me\n[client]\nuser=you\n"
	               "[clients]\nuser=no\n[Client]\nuser=no\n[bizlock]\nuser=again\n",
	               "bizlock.user=<me>\nclient.user=<you>\nbizlock.user=<again>\n");
}

Test(optfile, empty_files_and_missing_last_newline)
{
	expect_entries("", "");
	expect_entries("\n\n", "");
	expect_entries("[client]", "");
	expect_entries("[client]\nport=1", "client.port=<1>\n");
	expect_entries("[client]\r\nport=1\r\nssl\r\n", "client.port=<1>\nclient.ssl\n");
}

Test(optfile, blanks_and_spellings)
{
	expect_entries("  [client]  \n"
	               "\tlease-ms\t=\t 500 \t\n"
	               "io-timeout_ms=1\n"
	               "value = a-b_c\n"
	               "  skip-ssl  \n"
	               "empty=\n"
	               "blank = \t \n"
	               "two = a  b \n"
	               "eq = a=b\n"
	               "Case = Kept\n",
	               "client.lease_ms=<500>\nclient.io_timeout_ms=<1>\nclient.value=<a-b_c>\n"
	               "client.skip_ssl\nclient.empty=<>\nclient.blank=<>\nclient.two=<a  b>\n"
	               "client.eq=<a=b>\nclient.Case=<Kept>\n");
	expect_entries("[client ]\nport=1\n[bizlock] what follows is ignored\nport=2\n",
	               "client.port=<1>\nbizlock.port=<2>\n");
}

Test(optfile, comments)
{
	expect_entries("# c\n  ; c\n[client] # c\na=1 # c\nb=2#c\nc=3;d\nd # c\n#e=5\n;f=6\n"
	               "g=\"#\" # \"c\"\nh='#'\ni='a\\'#b' # c\n",
	               "client.a=<1>\nclient.b=<2>\nclient.c=<3;d>\nclient.d\n"
	               "client.g=<#>\nclient.h=<#>\nclient.i=<a'#b>\n");
}

Test(optfile, quotes)
{
	expect_entries("[client]\na=\" b \"\nb=' c '\nc=\"it's\"\nd=\"\"\ne=\"\nf=\"a'\ng=a\"b\"\n"
	               "h=\"a\"b\"\n",
	               "client.a=< b >\nclient.b=< c >\nclient.c=<it's>\nclient.d=<>\n"
	               "client.e=<\">\nclient.f=<\"a'>\nclient.g=<a\"b\">\nclient.h=<a\"b>\n");
}

Test(optfile, escapes)
{
	expect_entries("[client]\na=\\s1\\s\nb=1\\t2\\n3\\r4\\b5\nc=C:\\\\new\nd=\\x\\1\ne=a\\\n"
	               "f=\\\\s\ng=\"\\\"\\'\"\n",
	               "client.a=< 1 >\nclient.b=<1\t2\n3\r4\b5>\nclient.c=<C:\\new>\n"
	               "client.d=<\\x\\1>\nclient.e=<a\\>\nclient.f=<\\s>\nclient.g=<\"'>\n");
}

Test(optfile, values_are_bytes)
{
	expect_entries("[client]\npassword=p\xc3\xa1\xf0\x9f\x94\x92\xff\xa0\n",
	               "client.password=<p\xc3\xa1\xf0\x9f\x94\x92\xff\xa0>\n");
}

/* A bad line is an error in groups that are not wanted, too. */
Test(optfile, bad_lines_are_named)
{
	static const struct {
		const char *text, *msg;
	} rows[] = {
	        {"user=me\n", "/my.cnf:1: an option before any [group]"},
	        {"# c\n\nssl\n", "/my.cnf:3: an option before any [group]"},
	        {"[client\nuser=me\n", "/my.cnf:1: a [group] without its ']'"},
	        {"[client]\n=me\n", "/my.cnf:2: a value without an option"},
	        {"[mysqld]\n = me\n", "/my.cnf:2: a value without an option"},
	        {"[client]\n!\n", "/my.cnf:2: neither !include nor !includedir"},
	        {"[client]\n!includes x\n", "/my.cnf:2: neither !include nor !includedir"},
	        {"[client]\n!Include x\n", "/my.cnf:2: neither !include nor !includedir"},
	        {"!include\n", "/my.cnf:1: an include without its path"},
	        {"\n!includedir  \n", "/my.cnf:2: an include without its path"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		write_file("my.cnf", rows[i].text);
		expect_invalid("my.cnf", rows[i].msg);
	}
	write_bytes("my.cnf", "[client]\nuser=m\0e\n", 18);
	expect_invalid("my.cnf", "/my.cnf:2: a NUL byte");
	write_bytes("my.cnf", "[client]\nuser=me\n\0", 18);
	expect_invalid("my.cnf", "/my.cnf:3: a NUL byte");
}

Test(optfile, the_callback_ends_the_reading)
{
	write_file("my.cnf", "[client]\nuser=me\n\nstop=now\nport=1\n");
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_LIMIT);
	cr_expect_str_eq(seen.data, "client.user=<me>\n");
	cr_expect_str_eq(err.msg + strlen(dir), "/my.cnf:4: told to stop");
}

Test(optfile, missing_files)
{
	cr_expect_eq(read_it("none.cnf", false), BIZLOCK_OK);
	cr_expect_eq(read_it("none.cnf/deeper.cnf", false), BIZLOCK_OK);
	write_file("file", "");
	cr_expect_eq(read_it("file/.my.cnf", false), BIZLOCK_OK, "as with HOME=/dev/null");
	cr_expect_eq(read_it("none.cnf", true), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "none.cnf: No such file"), "%s", err.msg);
}

/* A file that is there but cannot be read is an error: its user wrote it to be read. */
Test(optfile, unreadable_and_odd_files)
{
	cr_assert_eq(symlink(path_of("loop.cnf"), path_of("loop.cnf")), 0);
	cr_expect_eq(read_it("loop.cnf", false), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "loop.cnf: "), "%s", err.msg);

	cr_assert_eq(mkdir(path_of("dir.cnf"), 0700), 0);
	cr_expect_eq(read_it("dir.cnf", false), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "dir.cnf: not a regular file"), "%s", err.msg);
}

Test(optfile, a_named_pipe_does_not_hang, .timeout = 30)
{
	cr_assert_eq(mkfifo(path_of("pipe.cnf"), 0600), 0);
	cr_expect_eq(read_it("pipe.cnf", false), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "pipe.cnf: not a regular file"), "%s", err.msg);
}

Test(optfile, a_file_that_everybody_may_write_is_refused)
{
	static const mode_t fine[] = {0400, 0600, 0644, 0664, 0775};
	static const mode_t bad[] = {0602, 0606, 0666, 0777};

	write_file("my.cnf", "[client]\nuser=me\n");
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		cr_assert_eq(chmod(path_of("my.cnf"), fine[i]), 0);
		cr_expect_eq(read_it("my.cnf", true), BIZLOCK_OK, "%o", (unsigned)fine[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		cr_assert_eq(chmod(path_of("my.cnf"), bad[i]), 0);
		cr_expect_eq(read_it("my.cnf", false), BIZLOCK_INVALID, "%o", (unsigned)bad[i]);
		cr_expect_not_null(strstr(err.msg, "everybody may write"), "%s", err.msg);
		cr_expect_str_eq(seen.data, "");
	}
}

Test(optfile, one_mebibyte_is_the_limit)
{
	static const char head[] = "[client]\nuser=me\n";
	size_t size = 1 << 20;
	char *text = malloc(size + 1);

	cr_assert_not_null(text);
	memset(text, '#', size + 1);
	memcpy(text, head, sizeof(head) - 1);
	write_bytes("my.cnf", text, size);
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_OK, "%s", err.msg);
	cr_expect_str_eq(seen.data, "client.user=<me>\n");
	write_bytes("my.cnf", text, size + 1);
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "my.cnf: larger than 1 MiB"), "%s", err.msg);
	free(text);
}

Test(optfile, include_reads_in_place_and_keeps_the_group)
{
	write_file("more.cnf", "[bizlock]\nb=2\n[mysqld]\n");
	expect_entries("[client]\na=1\n!include %/more.cnf\nc=3\n  ! \t include \t %/more.cnf \n"
	               "!include %/none.cnf\n",
	               "client.a=<1>\nbizlock.b=<2>\nclient.c=<3>\nbizlock.b=<2>\n");
}

Test(optfile, an_included_file_begins_without_a_group)
{
	write_file("more.cnf", "user=me\n");
	write_file("my.cnf", "[client]\n!include %/more.cnf\n");
	expect_invalid("my.cnf", "/more.cnf:1: an option before any [group]");
}

Test(optfile, includedir_reads_cnf_files_sorted_by_bytes)
{
	cr_assert_eq(mkdir(path_of("d"), 0700), 0);
	write_file("d/b.cnf", "[client]\nb\n");
	write_file("d/a.cnf", "[client]\na\n");
	write_file("d/B.cnf", "[client]\nB\n");
	write_file("d/10.cnf", "[client]\n10\n");
	write_file("d/9.cnf", "[client]\n9\n");
	write_file("d/a.b.cnf", "[client]\na.b\n");
	write_file("d/a.ini", "[client]\nini\n");
	write_file("d/a.cnf~", "[client]\nbackup\n");
	write_file("d/cnf", "[client]\nbare\n");
	cr_assert_eq(symlink("gone", path_of("d/.#a.cnf")), 0);
	expect_entries(
	        "!includedir %/d\n[client]\nlast\n",
	        "client.10\nclient.9\nclient.B\nclient.a.b\nclient.a\nclient.b\nclient.last\n");
	expect_entries("!includedir %/d/\n", "client.10\nclient.9\nclient.B\nclient.a.b\nclient.a\n"
	                                     "client.b\n");
}

Test(optfile, includedir_errors)
{
	write_file("my.cnf", "[client]\n!includedir %/none\n");
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_INVALID);
	cr_expect_not_null(strstr(err.msg, "/my.cnf:2: directory "), "%s", err.msg);

	cr_assert_eq(mkdir(path_of("d"), 0700), 0);
	write_file("d/a.cnf", "[client]\na\n");
	write_file("d/b.cnf", "[client\n");
	write_file("d/c.cnf", "[client]\nc\n");
	write_file("my.cnf", "!includedir %/d\n[client]\nlast\n");
	expect_invalid("my.cnf", "/d/b.cnf:1: a [group] without its ']'");
	cr_expect_str_eq(seen.data, "client.a\n");

	write_file("d/b.cnf", "");
	cr_assert_eq(chmod(path_of("d/b.cnf"), 0666), 0);
	cr_expect_eq(read_it("my.cnf", true), BIZLOCK_INVALID, "the rule holds for included files");
}

static void write_chain(unsigned length)
{
	for (unsigned i = 0; i < length; i++) {
		char name[16], text[64];

		snprintf(name, sizeof(name), "%u.cnf", i);
		snprintf(text, sizeof(text), "!include %%/%u.cnf\n[client]\nfile%u\n", i + 1, i);
		write_file(name, text);
	}
}

Test(optfile, ten_includes_deep_is_the_limit)
{
	write_chain(10);
	write_file("10.cnf", "[client]\ndeepest\n");
	cr_expect_eq(read_it("0.cnf", true), BIZLOCK_OK, "%s", err.msg);
	cr_expect_eq(memcmp(seen.data, "client.deepest\nclient.file9\n", 28), 0);
	write_chain(11);
	write_file("11.cnf", "[client]\ndeepest\n");
	expect_invalid("0.cnf", "/10.cnf:1: more than 10 includes, one in another");
}

Test(optfile, a_file_that_includes_itself_ends)
{
	write_file("my.cnf", "!include %/my.cnf\n");
	expect_invalid("my.cnf", "/my.cnf:1: more than 10 includes, one in another");
	cr_assert_eq(mkdir(path_of("d"), 0700), 0);
	write_file("d/a.cnf", "!includedir %/d\n");
	write_file("d/b.cnf", "!includedir %/d\n");
	expect_invalid("d/b.cnf", "/d/a.cnf:1: more than 10 includes, one in another");
}
