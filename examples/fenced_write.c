/* A holder is stopped past its lease, between the last look at its lock and the
 * write. Meanwhile another one takes the lock over and edits the document. What
 * becomes of the edit? Three rounds: a plain write, which undoes it; a write that
 * is committed by bizlock_commit(); and one that compares fences.
 *
 * The documents are in the database of the locks, on connections of the program's own. */
#define _DEFAULT_SOURCE 1
#include <bizlock_tx.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DOCUMENT 1
#define BODY_MAX 200

static const bizlock_key key = {"doc", "1"};
static unsigned long lease_ms = 1000;

/* What a process is told by another one's exit status. */
enum verdict { WRITTEN, FAILED, REFUSED };

struct writer {
	MYSQL *db;
	bizlock *lock;
	uint64_t fence;
};

typedef enum verdict write_fn(const struct writer *, const char *body);

static _Noreturn __attribute__((format(printf, 1, 2))) void die(const char *format, ...)
{
	va_list args;

	fflush(stdout);
	fputs("fenced_write: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	_exit(FAILED);
}

/* Each line is flushed: several processes write to one terminal. */
static __attribute__((format(printf, 1, 2))) void say(const char *format, ...)
{
	va_list args;

	fputs("  ", stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
	fflush(stdout);
}

static unsigned long number(const char *what, const char *text, unsigned long min,
                            unsigned long max)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (*text < '0' || *text > '9' || *end != '\0' || value < min || value > max)
		die("%s must be a number from %lu to %lu", what, min, max);
	return value;
}

/* ---- the database ---------------------------------------------------------------- */

/* A client, and a connection to the same server: for each process its own, made after fork(). */
static struct writer writer_open(void)
{
	struct writer w = {.db = mysql_init(NULL)};

	if (bizlock_new(&w.lock) != BIZLOCK_OK || bizlock_open(w.lock) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(w.lock));
	if (w.db == NULL)
		die("out of memory");
	if (bizlock_connect(w.lock, w.db) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(w.lock));
	return w;
}

static void writer_close(struct writer *w)
{
	bizlock_close(w->lock);
	mysql_close(w->db);
}

/* Returns the rows of a SELECT, which the caller frees. */
static __attribute__((format(printf, 2, 3))) MYSQL_RES *run_sql(MYSQL *db, const char *format, ...)
{
	char sql[1024];
	va_list args;
	MYSQL_RES *rows = NULL;

	va_start(args, format);
	vsnprintf(sql, sizeof(sql), format, args);
	va_end(args);
	if (mysql_query(db, sql) == 0)
		rows = mysql_store_result(db);
	if (mysql_errno(db) != 0)
		die("%s\n  in: %s", mysql_error(db), sql);
	return rows;
}

static void read_body(MYSQL *db, char body[BODY_MAX])
{
	MYSQL_RES *rows = run_sql(db, "SELECT body FROM shop_doc WHERE id = %d", DOCUMENT);
	MYSQL_ROW row = mysql_fetch_row(rows);

	if (row == NULL)
		die("there is no document %d", DOCUMENT);
	snprintf(body, BODY_MAX, "%s", row[0]);
	mysql_free_result(rows);
}

static void make_document(void)
{
	struct writer w = writer_open();

	run_sql(w.db, "CREATE TABLE IF NOT EXISTS shop_doc (id INT PRIMARY KEY,"
	              " body VARCHAR(200) NOT NULL, fence BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB");
	run_sql(w.db, "DELETE FROM shop_doc");
	run_sql(w.db, "INSERT INTO shop_doc VALUES (%d, 'draft', 0)", DOCUMENT);
	writer_close(&w);
}

/* ---- three ways to write ------------------------------------------------------------ */

static enum verdict write_plainly(const struct writer *w, const char *body)
{
	run_sql(w->db, "UPDATE shop_doc SET body = '%s' WHERE id = %d", body, DOCUMENT);
	return WRITTEN;
}

/* The lock is looked at in the transaction itself, and can not pass on before the
 * transaction has ended. */
static enum verdict write_and_commit(const struct writer *w, const char *body)
{
	int rc;

	run_sql(w->db, "START TRANSACTION");
	run_sql(w->db, "UPDATE shop_doc SET body = '%s' WHERE id = %d", body, DOCUMENT);
	rc = bizlock_commit(w->lock, key, NULL, w->db);
	if (rc == BIZLOCK_OK)
		return WRITTEN;
	if (rc != BIZLOCK_LOST)
		die("%s", bizlock_errmsg(w->lock));
	say("bizlock_commit(): %s", bizlock_strerror(rc));
	return REFUSED;
}

/* For stores that bizlock knows nothing of: they remember the largest fence. */
static enum verdict write_if_newest(const struct writer *w, const char *body)
{
	run_sql(w->db,
	        "UPDATE shop_doc SET body = '%s', fence = %" PRIu64
	        " WHERE id = %d AND fence <= %" PRIu64,
	        body, w->fence, DOCUMENT, w->fence);
	if (mysql_affected_rows(w->db) == 1)
		return WRITTEN;
	say("no row with a fence <= %" PRIu64 ": a later holder has been there", w->fence);
	return REFUSED;
}

/* The text may have quotes in it. */
static enum verdict write_text(const struct writer *w, write_fn *write_body, const char *text)
{
	char quoted[4 * BODY_MAX + 1];

	mysql_real_escape_string(w->db, quoted, text, strlen(text));
	return write_body(w, quoted);
}

/* ---- two processes -------------------------------------------------------------------- */

/* The lease is renewed while the process runs, and not while it is stopped. */
static void take_lock(struct writer *w, const char *name)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	*w = writer_open();
	opts.wait_ms = 60000;
	opts.lease_ms = (uint32_t)lease_ms;
	opts.note = name;
	if (bizlock_acquire(w->lock, key, &opts, &grant) != BIZLOCK_OK)
		die("%s", bizlock_errmsg(w->lock));
	w->fence = grant.fence;
	say("%s has the lock%s, fence %" PRIu64, name,
	    grant.flags & BIZLOCK_TOOK_OVER ? " (taken over)" : "", grant.fence);
}

static void give_lock_back(struct writer *w)
{
	int rc = bizlock_release(w->lock, key, NULL, NULL);

	if (rc != BIZLOCK_OK && rc != BIZLOCK_LOST)
		die("%s", bizlock_errmsg(w->lock));
	writer_close(w);
}

/* Reads, looks at its lock, finds all well, and is stopped there. */
static _Noreturn void be_holder(write_fn *write_body)
{
	char body[BODY_MAX], edited[2 * BODY_MAX];
	struct writer w;
	enum verdict verdict;

	take_lock(&w, "the holder");
	read_body(w.db, body);
	snprintf(edited, sizeof(edited), "%.100s, signed by the holder", body);
	if (bizlock_left_ms(w.lock, key, NULL) <= 0)
		die("the lease is over already: try a longer one");
	say("the holder has read \"%s\", and still has %" PRId64 " ms", body,
	    bizlock_left_ms(w.lock, key, NULL));
	if (raise(SIGSTOP) != 0)
		die("stop: %s", strerror(errno));
	say("the holder goes on, and writes");
	verdict = write_text(&w, write_body, edited);
	give_lock_back(&w);
	_exit((int)verdict);
}

static _Noreturn void be_editor(write_fn *write_body)
{
	char body[BODY_MAX], edited[2 * BODY_MAX];
	struct writer w;
	enum verdict verdict;

	take_lock(&w, "the editor");
	read_body(w.db, body);
	snprintf(edited, sizeof(edited), "%.100s, corrected by the editor", body);
	verdict = write_text(&w, write_body, edited);
	say("the editor %s \"%s\"", verdict == WRITTEN ? "has written" : "may not write", edited);
	give_lock_back(&w);
	_exit((int)verdict);
}

static enum verdict end_of(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	if (!WIFEXITED(status))
		die("a process died of signal %d", WTERMSIG(status));
	return (enum verdict)WEXITSTATUS(status);
}

static void await_stop(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, WUNTRACED) != pid)
		die("waitpid: %s", strerror(errno));
	if (!WIFSTOPPED(status))
		die("the holder ended too early");
}

static enum verdict play(write_fn *write_body)
{
	pid_t holder, editor;
	enum verdict edit;

	fflush(stdout); /* or each process would print it again */
	holder = fork();
	if (holder == 0)
		be_holder(write_body);
	if (holder < 0)
		die("fork: %s", strerror(errno));
	await_stop(holder);
	say("the holder is stopped");
	editor = fork();
	if (editor == 0)
		be_editor(write_body);
	edit = editor < 0 ? FAILED : end_of(editor);
	kill(holder, SIGCONT);
	if (edit != WRITTEN) {
		end_of(holder);
		die("the editor could not write");
	}
	return end_of(holder);
}

/* ---- three rounds ----------------------------------------------------------------------- */

/* Returns whether it ended as it should. */
static bool round_of(const char *title, write_fn *write_body, enum verdict expected)
{
	char body[BODY_MAX];
	enum verdict verdict;
	bool kept;
	struct writer w;

	printf("%s\n", title);
	make_document();
	verdict = play(write_body);
	w = writer_open();
	read_body(w.db, body);
	writer_close(&w);
	kept = strstr(body, "corrected by the editor") != NULL;
	say("the document is now \"%s\"", body);
	printf("  => %s\n\n", kept ? "refused: the correction is there"
	                           : "corrupted: the correction is lost, and nobody was told");
	return verdict == expected && kept == (expected == REFUSED);
}

static const char usage[] =
        "Usage: fenced_write [-l LEASE_MS] [--help]\n"
        "A holder is stopped past its lease of LEASE_MS (100 to 60000, default 1000), and then\n"
        "writes: without a fence, by bizlock_commit(), and by comparing fences.\n\n"
        "The server is given by BIZLOCK_HOST, _PORT, _SOCKET, _USER, _PASSWORD and _DATABASE\n"
        "(default: bizlock_demo), or by BIZLOCK_DEFAULTS_FILE, for the document and the lock\n"
        "alike. The table shop_doc of that database is created, and emptied.\n"
        "Exit status: 0 if only the write without a fence did harm, 1 if not or after an error.\n";

static void parse_options(int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "l:", options, NULL)) != -1) {
		if (c == 'l')
			lease_ms = number("-l", optarg, 100, 60000);
		else
			exit(fputs(usage, c == 'h' ? stdout : stderr) < 0 || c != 'h');
	}
	if (optind < argc)
		die("unexpected argument %s; see --help", argv[optind]);
}

int main(int argc, char **argv)
{
	bool good;

	parse_options(argc, argv);
	if (getenv("BIZLOCK_DEFAULTS_FILE") == NULL)
		setenv("BIZLOCK_DATABASE", "bizlock_demo", 0);
	good = round_of("A plain write", write_plainly, WRITTEN);
	good = round_of("A write committed by bizlock_commit()", write_and_commit, REFUSED) && good;
	good = round_of("A write that compares fences", write_if_newest, REFUSED) && good;
	if (!good)
		die("that is not what should have happened");
	puts("A lock tells who may write; only a fence keeps out who no longer may.");
	return 0;
}
