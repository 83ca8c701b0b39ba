#include "base/optfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define SIZE_LIMIT (1 << 20)
#define DEPTH_LIMIT 10
#define BLANKS " \t\r\v\f"

struct reader {
	const char *const *groups;
	bl_optfile_fn *fn;
	void *arg;
	struct bl_err *err;
};

/* A file, and how far its reading has come. */
struct place {
	const char *path;
	unsigned line, depth;
	bool grouped;      /* a [group] has been seen */
	const char *group; /* the wanted group that the line is in, or NULL */
};

static int read_file(const struct reader *r, const char *path, bool must_exist, unsigned depth);

static int bad_line(const struct reader *r, const struct place *p, const char *what)
{
	return bl_err_set(r->err, BIZLOCK_INVALID, "%s:%u: %s", p->path, p->line, what);
}

static int bad_file(const struct reader *r, const char *path, const char *what)
{
	return bl_err_set(r->err, BIZLOCK_INVALID, "option file %s: %s", path, what);
}

static int no_memory(const struct reader *r)
{
	return bl_err_set(r->err, BIZLOCK_NOMEM, "out of memory");
}

/* Cuts blanks off both ends. */
static char *trim(char *text)
{
	size_t len;

	text += strspn(text, BLANKS);
	len = strlen(text);
	while (len > 0 && strchr(BLANKS, text[len - 1]))
		len--;
	text[len] = '\0';
	return text;
}

/* A '#' starts a comment anywhere but between quotes. */
static void cut_comment(char *at)
{
	char quote = '\0';

	for (; *at && (quote || *at != '#'); at++) {
		if (quote && *at == '\\' && at[1])
			at++;
		else if (quote && *at == quote)
			quote = '\0';
		else if (!quote && (*at == '"' || *at == '\''))
			quote = *at;
	}
	*at = '\0';
}

/* The character that the escape \c stands for; NUL: no escape, and the backslash stays. */
static char escaped(char c)
{
	static const char from[] = "btnrs\\\"'", to[] = "\b\t\n\r \\\"'";
	const char *at = c ? strchr(from, c) : NULL;

	return at ? to[at - from] : '\0';
}

/* Takes quotes and escapes off, in place. */
static char *plain(char *value)
{
	size_t len = strlen(value);
	char *to;

	if (len >= 2 && (*value == '"' || *value == '\'') && value[len - 1] == *value) {
		value[len - 1] = '\0';
		value++;
	}
	to = value;
	for (const char *from = value; *from; from++) {
		char c = *from == '\\' ? escaped(from[1]) : '\0';

		*to++ = c ? c : *from;
		from += c != '\0';
	}
	*to = '\0';
	return value;
}

static int take_entry(const struct reader *r, const struct place *p, char *line)
{
	char *value, *key;
	int rc;

	if (!p->grouped)
		return bad_line(r, p, "an option before any [group]");
	cut_comment(line);
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	key = trim(line);
	if (!*key)
		return bad_line(r, p, "a value without an option");
	if (!p->group)
		return BIZLOCK_OK;
	for (char *c = key; *c; c++)
		*c = *c == '-' ? '_' : *c;
	rc = r->fn(r->arg, p->group, key, value ? plain(trim(value)) : NULL, r->err);
	if (rc != BIZLOCK_OK)
		bl_err_wrap(r->err, "%s:%u", p->path, p->line);
	return rc;
}

/* Text behind the ']' is ignored, as the servers' own reader does. */
static int take_group(const struct reader *r, struct place *p, char *name)
{
	char *end = strchr(name, ']');

	if (!end)
		return bad_line(r, p, "a [group] without its ']'");
	*end = '\0';
	name = trim(name);
	p->grouped = true;
	p->group = NULL;
	for (const char *const *g = r->groups; *g; g++)
		if (strcmp(*g, name) == 0)
			p->group = *g;
	return BIZLOCK_OK;
}

static int is_option_file(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');

	return dot && strcmp(dot, ".cnf") == 0;
}

/* By bytes: with alphasort() the locale would decide which file is read last and wins. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_entry(const struct reader *r, const struct place *p, const char *dir,
                      const char *name)
{
	struct bl_buf path = BL_BUF_INIT(2 * SIZE_LIMIT);
	int rc;

	bl_buf_addf(&path, "%s/%s", dir, name);
	if (path.failed)
		rc = no_memory(r);
	else
		rc = read_file(r, path.data, false, p->depth + 1);
	bl_buf_free(&path);
	return rc;
}

static int read_directory(const struct reader *r, const struct place *p, const char *dir)
{
	struct dirent **entries;
	int count = scandir(dir, &entries, is_option_file, by_name), rc = BIZLOCK_OK;

	if (count < 0) {
		bl_err_set(r->err, BIZLOCK_INVALID, "%s:%u: directory %s: %s", p->path, p->line,
		           dir, strerror(errno));
		return BIZLOCK_INVALID;
	}
	for (int i = 0; i < count; i++) {
		if (rc == BIZLOCK_OK)
			rc = read_entry(r, p, dir, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return rc;
}

static int take_directive(const struct reader *r, const struct place *p, char *text)
{
	size_t word;
	bool dir;
	char *path;

	text = trim(text);
	word = strcspn(text, BLANKS);
	dir = word == strlen("includedir") && strncmp(text, "includedir", word) == 0;
	if (!dir && (word != strlen("include") || strncmp(text, "include", word) != 0))
		return bad_line(r, p, "neither !include nor !includedir");
	path = trim(text + word);
	if (!*path)
		return bad_line(r, p, "an include without its path");
	if (p->depth >= DEPTH_LIMIT)
		return bad_line(r, p, "more than 10 includes, one in another");
	return dir ? read_directory(r, p, path) : read_file(r, path, false, p->depth + 1);
}

static int take_line(const struct reader *r, struct place *p, char *line)
{
	line += strspn(line, BLANKS);
	switch (*line) {
	case '\0':
	case '#':
	case ';':
		return BIZLOCK_OK;
	case '!':
		return take_directive(r, p, line + 1);
	case '[':
		return take_group(r, p, line + 1);
	default:
		return take_entry(r, p, line);
	}
}

/* `text` is NUL-terminated behind its len bytes. */
static int take_text(const struct reader *r, const char *path, unsigned depth, char *text,
                     size_t len)
{
	struct place p = {path, 0, depth, false, NULL};
	char *end = text + len, *next;
	int rc = BIZLOCK_OK;

	for (; text < end && rc == BIZLOCK_OK; text = next) {
		char *eol = memchr(text, '\n', (size_t)(end - text));

		eol = eol ? eol : end;
		next = eol + 1;
		*eol = '\0';
		p.line++;
		rc = strlen(text) < (size_t)(eol - text) ? bad_line(r, &p, "a NUL byte")
		                                         : take_line(r, &p, text);
	}
	return rc;
}

/* Refuses a file that must not be read; else *size is its size. */
static int check_file(const struct reader *r, const char *path, int fd, size_t *size)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return bad_file(r, path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return bad_file(r, path, "not a regular file");
	if (st.st_mode & S_IWOTH)
		return bad_file(r, path, "everybody may write to it, so it is not trusted");
	if (st.st_size > SIZE_LIMIT)
		return bad_file(r, path, "larger than 1 MiB");
	*size = (size_t)st.st_size;
	return BIZLOCK_OK;
}

/* Reads up to *size bytes; *size becomes the number of bytes read. */
static int read_whole(const struct reader *r, const char *path, int fd, char *ret, size_t *size)
{
	size_t len = 0;

	while (len < *size) {
		ssize_t got = read(fd, ret + len, *size - len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return bad_file(r, path, strerror(errno));
		if (got == 0)
			break;
		len += (size_t)got;
	}
	ret[len] = '\0';
	*size = len;
	return BIZLOCK_OK;
}

static int read_open(const struct reader *r, const char *path, int fd, unsigned depth)
{
	size_t size = 0;
	char *text;
	int rc = check_file(r, path, fd, &size);

	if (rc != BIZLOCK_OK)
		return rc;
	text = malloc(size + 1);
	if (!text)
		return no_memory(r);
	rc = read_whole(r, path, fd, text, &size);
	if (rc == BIZLOCK_OK)
		rc = take_text(r, path, depth, text, size);
	explicit_bzero(text, size); /* a password may be in it */
	free(text);
	return rc;
}

static int read_file(const struct reader *r, const char *path, bool must_exist, unsigned depth)
{
	/* Without O_NONBLOCK, open() of a named pipe would block until somebody writes. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), rc;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR) && !must_exist)
		return BIZLOCK_OK;
	if (fd < 0)
		return bad_file(r, path, strerror(errno));
	rc = read_open(r, path, fd, depth);
	close(fd);
	return rc;
}

int bl_optfile_read(const char *path, bool must_exist, const char *const *groups, bl_optfile_fn *fn,
                    void *arg, struct bl_err *err)
{
	struct reader r = {groups, fn, arg, err};

	return read_file(&r, path, must_exist, 0);
}
