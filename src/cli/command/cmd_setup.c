/* bizlock migrate and bizlock grants: set up tables and privileges. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

struct options {
	bool dry_run, status, raise_fences, routines, drop_routines;
};

#define AT(field) offsetof(struct options, field)

const struct cli_option cli_migrate_options[] = {
        {"dry-run", 0, CLI_FLAG, AT(dry_run), 0, 0, NULL, "print the SQL, and run nothing"},
        {"status", 0, CLI_FLAG, AT(status), 0, 0, NULL, "what has been applied, and when"},
        {"raise-fences", 0, CLI_FLAG, AT(raise_fences), 0, 0, NULL,
         "let fences go on above all that were ever given"},
        {"routines", 0, CLI_FLAG, AT(routines), 0, 0, NULL,
         "make or renew the routines for other languages"},
        {"drop-routines", 0, CLI_FLAG, AT(drop_routines), 0, 0, NULL, "drop the routines"},
        {0},
};

const char cli_migrate_more[] =
        "Creates what is missing of the tables, in the database given by -D. Needs the\n"
        "privilege CREATE; --status needs SELECT alone, and exits by 1 if something is to\n"
        "be done. After a TRUNCATE, a restored dump, or a copy of a table in its place\n"
        "fences would come again: --raise-fences keeps them above all that were given.\n"
        "--routines needs the privileges CREATE ROUTINE, ALTER ROUTINE, CREATE VIEW and\n"
        "DROP, too. The routines run with the privileges of the user that makes them.\n";

struct grants_options {
	bool routines;
};

const struct cli_option cli_grants_options[] = {
        {"routines", 0, CLI_FLAG, offsetof(struct grants_options, routines), 0, 0, NULL,
         "those of a user of the routines alone"},
        {0},
};

const char cli_grants_more[] =
        "USER: \"name\" or \"name@host\"; without a host, %. Prints the statements for an\n"
        "administrator to run, and needs no server. They are all that bizlock needs, but\n"
        "for CREATE, which migrate needs.\n";

/* ---- migrate ---------------------------------------------------------------------------- */

struct migrations {
	struct options o;
	FILE *out;
	unsigned pending;
};

static int show_migration(void *arg, const bizlock_migration *m)
{
	struct migrations *all = arg;

	all->pending += m->pending ? 1 : 0;
	if (all->o.status)
		fprintf(all->out, "%-24s %s%s\n", m->name, m->pending ? "pending" : "applied ",
		        m->pending ? "" : m->applied_at);
	else if (m->pending && all->o.dry_run)
		fprintf(all->out, "-- %s\n%s", m->name, m->sql);
	else if (m->pending)
		fprintf(all->out, "applied %s\n", m->name);
	return 0;
}

static int raise_fences(struct cli *c, FILE *out)
{
	uint64_t raised = 0;
	int rc = bizlock_raise_fences(c->lock, &raised);

	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	fprintf(out, "fences go on above %" PRIu64 "\n", raised);
	return CLI_DONE;
}

static int drop_routines(struct cli *c, FILE *out)
{
	int rc = bizlock_drop_routines(c->lock);

	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	fputs("dropped the routines\n", out);
	return CLI_DONE;
}

static int make_routines(struct cli *c, FILE *out)
{
	int rc = bizlock_migrate_routines(c->lock);

	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	fputs("applied routines.sql\n", out);
	return CLI_DONE;
}

static int migrate(struct cli *c, struct migrations *all)
{
	int code = CLI_DONE, rc = bizlock_each_migration(c->lock, show_migration, all);

	if (rc == BIZLOCK_OK && !all->o.status && !all->o.dry_run && all->pending)
		rc = bizlock_migrate(c->lock);
	if (rc != BIZLOCK_OK)
		return cli_failed(c, rc);
	if (!all->pending && !all->o.status && !all->o.raise_fences && !all->o.routines)
		cli_say("the tables are as they should be");
	if (all->o.raise_fences)
		code = raise_fences(c, all->out);
	if (all->o.routines && code == CLI_DONE)
		code = make_routines(c, all->out);
	return all->pending && all->o.status ? CLI_NO : code;
}

/* What is said is said when it is done. */
int cli_migrate(struct cli *c)
{
	struct migrations all = {.o = {.dry_run = false}};
	char *text = NULL;
	size_t size;
	int code = cli_parse(c, &all.o);

	if (code == CLI_GO_ON && all.o.dry_run && all.o.status)
		return cli_misused(c, "migrate: --dry-run or --status, not both");
	if (code == CLI_GO_ON && all.o.raise_fences && (all.o.dry_run || all.o.status))
		return cli_misused(c, "migrate: --raise-fences changes something");
	if (code == CLI_GO_ON && all.o.routines && (all.o.dry_run || all.o.status))
		return cli_misused(c, "migrate: --routines changes something");
	if (code == CLI_GO_ON && all.o.drop_routines &&
	    (all.o.routines || all.o.raise_fences || all.o.dry_run || all.o.status))
		return cli_misused(c, "migrate: --drop-routines stands alone");
	if (code == CLI_GO_ON)
		code = cli_password(c);
	if (code != CLI_GO_ON)
		return code;
	all.out = open_memstream(&text, &size);
	if (!all.out)
		return cli_give_up(CLI_INTERNAL, "out of memory");
	code = all.o.drop_routines ? drop_routines(c, all.out) : migrate(c, &all);
	if (fclose(all.out) == 0 && code <= CLI_NO)
		fputs(text, stdout);
	free(text);
	return code;
}

/* ---- grants ------------------------------------------------------------------------------ */

int cli_grants(struct cli *c)
{
	size_t size = 4096, need = 0;
	char *text = NULL;
	struct grants_options o = {.routines = false};
	int code = cli_parse(c, &o), rc;

	if (code != CLI_GO_ON)
		return code;
	do {
		free(text);
		text = malloc(size);
		if (!text)
			return cli_give_up(CLI_INTERNAL, "out of memory");
		rc = (o.routines ? bizlock_grants_routines : bizlock_grants)(c->lock, c->argv[0],
		                                                             text, size, &need);
		size = need + 1;
	} while (rc == BIZLOCK_LIMIT);
	if (rc == BIZLOCK_OK)
		fputs(text, stdout);
	free(text);
	return rc == BIZLOCK_OK ? CLI_DONE : cli_failed(c, rc);
}
