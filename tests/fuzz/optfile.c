/* base/optfile.h. The input is an option file. What stands behind a line "%" is a second
 * one, b.cnf, which the first may include. */
#include "base/optfile.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "common/fuzz.h"

#define FIRST "a.cnf"
#define SECOND "b.cnf"
#define AGAIN "again"
#define SIZE_LIMIT (1 << 20)
#define BLANKS " \t\r\v\f"

static const char *const groups[] = {"client", "bizlock", NULL};

/* What was read: lines of an option file that says the same, without comments, includes
 * and everything else that leaves a choice. */
struct book {
	struct bl_buf lines;
	size_t entries, odd; /* odd: with a key that a comment or a quote may cut */
	size_t stop;         /* the entry that is refused; 0: none */
};

static void write_quoted(struct bl_buf *to, const char *value)
{
	static const char plain[] = "\b\t\n\r\\\"", letters[] = "btnr\\\"";

	bl_buf_adds(to, " = \"");
	for (; *value; value++) {
		const char *at = strchr(plain, *value);

		if (at)
			bl_buf_addf(to, "\\%c", letters[at - plain]);
		else
			bl_buf_add(to, value, 1);
	}
	bl_buf_adds(to, "\"");
}

static int take(void *arg, const char *group, const char *key, const char *value,
                struct bl_err *err)
{
	struct book *book = arg;
	size_t len = strlen(key);

	assert(group == groups[0] || group == groups[1]);
	assert(len > 0 && len < SIZE_LIMIT && (!value || strlen(value) < SIZE_LIMIT));
	assert(!strchr(BLANKS, key[0]) && !strchr(BLANKS, key[len - 1]));
	assert(!strpbrk(key, "-=\n") && !strchr("#;[!", key[0]));
	if (++book->entries == book->stop)
		return bl_err_set(err, BIZLOCK_LIMIT, "enough");
	book->odd += strpbrk(key, "\"'#\\") != NULL;
	bl_buf_addf(&book->lines, "[%s]\n%s", group, key);
	if (value)
		write_quoted(&book->lines, value);
	bl_buf_adds(&book->lines, "\n");
	return BIZLOCK_OK;
}

static void write_file(const char *name, const void *data, size_t size)
{
	FILE *file = fopen(name, "w");

	assert(file && fwrite(data, 1, size, file) == size);
	assert(fclose(file) == 0);
}

static void check_again(const struct book *book)
{
	struct book again = {.lines = BL_BUF_INIT(8 * SIZE_LIMIT)};
	struct bl_err err;

	write_file(AGAIN, book->lines.data, book->lines.len);
	assert(bl_optfile_read(AGAIN, true, groups, take, &again, &err) == BIZLOCK_OK);
	unlink(AGAIN); /* the next input might include it */
	assert(again.entries == book->entries);
	assert(strcmp(again.lines.data, book->lines.data) == 0);
	bl_buf_free(&again.lines);
}

/* An entry that its taker refuses ends the reading, with the taker's code. */
static void check_refusal(const struct book *book)
{
	struct book last = {.lines = BL_BUF_INIT(8 * SIZE_LIMIT), .stop = book->entries};
	struct bl_err err;

	assert(bl_optfile_read(FIRST, true, groups, take, &last, &err) == BIZLOCK_LIMIT);
	fuzz_check_error(&err, BIZLOCK_LIMIT);
	assert(last.entries == book->entries && strstr(err.msg, ".cnf:"));
	bl_buf_free(&last.lines);
}

static void check_files(void)
{
	struct book book = {.lines = BL_BUF_INIT(8 * SIZE_LIMIT)};
	struct bl_err err;
	int rc = bl_optfile_read(FIRST, true, groups, take, &book, &err);

	if (rc != BIZLOCK_OK)
		fuzz_check_error(&err, BIZLOCK_INVALID);
	if (book.entries > 0)
		check_refusal(&book);
	if (rc == BIZLOCK_OK && book.entries > 0 && book.odd == 0 && book.lines.len < SIZE_LIMIT)
		check_again(&book);
	bl_buf_free(&book.lines);
}

/* The files are read by name: in a folder of ours, where there is nothing else. */
static char folder[4096];

static void leave(void)
{
	unlink(FIRST);
	unlink(SECOND);
	assert(rmdir(folder) == 0);
}

static void enter(void)
{
	const char *parent = getenv("TMPDIR");

	if (folder[0])
		return;
	snprintf(folder, sizeof(folder), "%s/bizlock-fuzz.XXXXXX", parent ? parent : "/tmp");
	umask(022); /* what everybody may write to is not read */
	assert(mkdtemp(folder) && chdir(folder) == 0 && atexit(leave) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *cut;

	/* What lies outside of the folder is not the input's. */
	if (size > 0 && (memchr(data, '/', size) || memmem(data, size, "..", 2)))
		return 0;
	enter();
	cut = size > 0 ? memmem(data, size, "\n%\n", 3) : NULL;
	write_file(FIRST, data, cut ? (size_t)(cut - data) : size);
	if (cut)
		write_file(SECOND, cut + 3, size - (size_t)(cut - data) - 3);
	else
		unlink(SECOND);
	check_files();
	return 0;
}
