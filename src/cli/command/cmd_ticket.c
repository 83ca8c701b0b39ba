/* bizlock acquire, renew and release: locks that outlive a command. Whoever has the ticket has the
 * lock. A ticket is the text of bizlock_export(), and is good once: renew imports the lock and
 * exports it anew, release imports it and releases it. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/exec/exec.h"

#define LEASE_MS 600000 /* of acquire: nobody renews it until the script does */
#define LEASE_MIN_MS 1000
#define OWNER EXEC_OWNER /* while this process has the lock */

#define AT(field) offsetof(struct cli_exec_options, field)
#define LEASE(help)                                                                                \
	{                                                                                          \
		"lease", 0, CLI_DURATION, AT(lease_ms), LEASE_MIN_MS, BIZLOCK_LEASE_MAX_MS,        \
		        "DURATION", help                                                           \
	}

const struct cli_option cli_acquire_options[] = {
        {"wait", 'w', CLI_WAIT, AT(wait_ms), 0, CLI_EXEC_WAIT_MAX_MS, "DURATION|forever",
         "for the lock; also --timeout. Default: forever"},
        {"timeout", 0, CLI_WAIT, AT(wait_ms), 0, CLI_EXEC_WAIT_MAX_MS, "DURATION|forever", NULL},
        {"nonblock", 'n', CLI_FLAG, AT(nonblock), 0, 0, NULL, "fail rather than wait, as -w 0"},
        LEASE("1s to 24h, renewed by renew alone; 10m"),
        {"shared", 's', CLI_FLAG, AT(shared), 0, 0, NULL, "a shared (read) lock"},
        {"exclusive", 'x', CLI_FLAG, AT(exclusive), 0, 0, NULL,
         "an exclusive (write) lock, the default"},
        {"limit", 0, CLI_NUMBER, AT(limit), 1, BIZLOCK_LIMIT_MAX, "N",
         "as -s, for N at a time; all name the same N"},
        {"note", 0, CLI_TEXT, AT(note), 0, 0, "TEXT", "why, for people who look"},
        {"verbose", 'v', CLI_FLAG, AT(verbose), 0, 0, NULL, "who holds it, how long it took"},
        {0},
};

const char cli_acquire_more[] =
        "Prints a ticket, and ends: whoever has the ticket has the lock, until the lease\n"
        "ends. A ticket is good once; renew prints the next. For what runs as one command\n"
        "exec is safer: it renews the lease, and ends a command that has lost its lock.\n"
        "  ticket=$(bizlock acquire -w 1m job nightly) || exit\n";

const struct cli_option cli_renew_options[] = {
        LEASE("from now on, 1s to 24h; as before"),
        {0},
};

const char cli_renew_more[] =
        "Starts the lease anew, and prints the next ticket; TICKET is used up. With the\n"
        "ticket \"-\" it is read from standard input.\n"
        "  next=$(bizlock renew \"$ticket\") && ticket=$next || exit\n"
        "80: the ticket was used before, or its lease is over. 69: no server; if that is\n"
        "all it says, the ticket is good, else the lock is lost, and the message says so.\n";

const struct cli_option cli_release_options[] = {{0}};

const char cli_release_more[] =
        "Frees the lock, and wakes who waits for it. With the ticket \"-\" it is read from\n"
        "standard input.\n"
        "80: the ticket was used before, or its lease is over; nothing was changed.\n";

/* Static, because a call that is not waited for goes on, and writes to it. */
static struct cli_exec x = {.o = {.wait_ms = -1, .busy_code = UINT64_MAX}, .signals = -1};

/* ---- tickets -------------------------------------------------------------------------- */

static int export(struct cli_exec *e)
{
	return bizlock_export(e->c->lock, e->keys.list[0], OWNER, e->ticket, sizeof(e->ticket));
}

/* A file on a network may say only when it is closed that it is full. */
static bool print_ticket(void)
{
	int copy;

	printf("%s\n", x.ticket);
	if (fflush(stdout) != 0)
		return false;
	copy = dup(STDOUT_FILENO);
	return copy < 0 || close(copy) == 0;
}

/* ---- acquire ---------------------------------------------------------------------------- */

/* If the lock was acquired, and could not be exported, closing the client releases it: nobody has
 * the ticket. */
int cli_acquire(struct cli *c)
{
	int code;

	if (bizlock_set(c->lock, "release_on_close", "on") != BIZLOCK_OK)
		return cli_failed(c, BIZLOCK_INVALID);
	x.c = c;
	x.o.lease_ms = LEASE_MS;
	code = cli_parse(c, &x.o);
	if (code == CLI_GO_ON)
		code = cli_exec_check_options(&x);
	if (code != CLI_GO_ON)
		return code;
	cli_exec_set_keys(&x, cli_key(c));
	code = cli_exec_begin(&x);
	if (code == CLI_GO_ON)
		code = cli_exec_acquire(&x, export);
	if (code == CLI_GO_ON && print_ticket()) {
		code = CLI_DONE;
	} else if (code == CLI_GO_ON) {
		cli_say("%s: the ticket could not be printed, so the lock is released", x.name);
		cli_exec_give_back(&x);
		code = CLI_OUTPUT;
	}
	cli_exec_end(&x);
	return code;
}

/* ---- renew, release --------------------------------------------------------------------- */

static char given[BIZLOCK_EXPORT_MAX + 1]; /* the ticket; one byte more than any ticket has */
static bool imported;                      /* the ticket is used up */

static int import(void)
{
	int rc = bizlock_import(x.c->lock, given, OWNER, &x.grants[0]);

	imported = rc == BIZLOCK_OK;
	return rc;
}

static int renew(struct cli_exec *e)
{
	int rc = import();

	if (rc == BIZLOCK_OK && e->o.lease_ms)
		rc = bizlock_renew(e->c->lock, e->keys.list[0], OWNER, (uint32_t)e->o.lease_ms);
	return rc == BIZLOCK_OK ? export(e) : rc;
}

/* All levels: a program that exported the lock may have entered it again. */
static int release(struct cli_exec *e)
{
	uint32_t depth = 0;
	int rc = import();

	do
		if (rc == BIZLOCK_OK)
			rc = bizlock_release(e->c->lock, e->keys.list[0], OWNER, &depth);
	while (rc == BIZLOCK_OK && depth > 0);
	return rc;
}

static bool read_given(const char *word)
{
	if (strcmp(word, "-") != 0)
		snprintf(given, sizeof(given), "%s", word);
	else if (!fgets(given, sizeof(given), stdin))
		return false;
	given[strcspn(given, "\n")] = '\0';
	return true;
}

/* Reads options and ticket, and opens the client. CLI_GO_ON or an exit code. */
static int begin(struct cli *c)
{
	static char type[BIZLOCK_TYPE_MAX + 1],
	        id[BIZLOCK_ID_MAX + 1]; /* the key is made of them */
	int code = cli_parse(c, &x.o);

	if (code != CLI_GO_ON)
		return code;
	if (!read_given(c->argv[0]))
		return cli_give_up(CLI_USAGE, "standard input has no ticket");
	if (bizlock_exported_key(c->lock, given, type, id) != BIZLOCK_OK)
		return cli_misused(c, "%s: this is not a ticket", c->command->name);
	x.c = c;
	x.o.wait_ms = 0; /* a script tries again if it likes: the ticket is good as before */
	cli_exec_set_keys(&x, (bizlock_key){type, id});
	code = cli_exec_begin(&x);
	return code == CLI_GO_ON && !cli_exec_catch(&x, false) ? CLI_SYSTEM : code;
}

/* For how long the lock stays when the next ticket is lost. */
static const char *lease(char buf[CLI_DURATION_SIZE])
{
	int64_t had_ms = x.grants[0].lease_ms;

	return cli_show_duration(x.o.lease_ms > had_ms ? x.o.lease_ms : had_ms, buf);
}

/* Says what has become of ticket and lock. */
static int failed(int rc)
{
	char buf[CLI_DURATION_SIZE];

	if (rc == BIZLOCK_LOST && !imported)
		return cli_give_up(CLI_LOST,
		                   "%s: the ticket was used before, its lease is over, or the lock "
		                   "was broken",
		                   x.name);
	cli_say("%s", rc == CLI_EXEC_LEFT ? "the server does not answer" : x.call_message);
	if (imported && rc != BIZLOCK_LOST)
		cli_say("%s: the ticket is used up; the lock is free in %s at most", x.name,
		        lease(buf));
	else if (rc == BIZLOCK_UNKNOWN || rc == CLI_EXEC_LEFT)
		cli_say("%s: whether the ticket is used up is not known; if it is, the lock is "
		        "free when its lease ends",
		        x.name);
	return rc == CLI_EXEC_LEFT ? CLI_UNREACHABLE : cli_exit_of(rc);
}

/* A signal that has come ends us when ticket and lock are safe. */
static int end(int code)
{
	cli_exec_end(&x);
	if (!x.came)
		return code;
	x.c->die_by = x.came;
	return 128 + x.came;
}

/* If the lock was imported, and could not be exported, its row stays until the lease ends: what the
 * lock guards is half done. */
int cli_renew(struct cli *c)
{
	char buf[CLI_DURATION_SIZE];
	int code, rc;

	if (bizlock_set(c->lock, "release_on_close", "off") != BIZLOCK_OK)
		return cli_failed(c, BIZLOCK_INVALID);
	code = begin(c);
	if (code != CLI_GO_ON)
		return code;
	x.grants[0] = (bizlock_grant)BIZLOCK_GRANT_INIT;
	rc = cli_exec_call(&x, renew);
	if (rc != BIZLOCK_OK)
		return end(failed(rc));
	if (print_ticket())
		return end(CLI_DONE);
	cli_say("%s: the next ticket could not be printed; the lock is free in %s at most", x.name,
	        lease(buf));
	return end(CLI_OUTPUT);
}

int cli_release(struct cli *c)
{
	int code = begin(c), rc;

	if (code != CLI_GO_ON)
		return code;
	x.grants[0] = (bizlock_grant)BIZLOCK_GRANT_INIT;
	rc = cli_exec_call(&x, release);
	return end(rc == BIZLOCK_OK ? CLI_DONE : failed(rc));
}
