/* Parses the options of any command by its table, and reports mistakes. */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"

#define OPTIONS_MAX 48
#define FIRST_VALUE 256 /* what getopt_long() answers for list[0] by its long name */

struct parser {
	struct cli *c;
	void *ret; /* the command's struct */
	const struct cli_option *list[OPTIONS_MAX];
	int count;
	struct option longs[OPTIONS_MAX + 1];
	char letters[3 * OPTIONS_MAX + 4];
};

const struct cli_option cli_common_options[] = {
        {"help", 0, CLI_HELP, 0, 0, 0, NULL, "this text"},
        {"version", 'V', CLI_VERSION, 0, 0, 0, NULL, "the version of program and library"},
        {0},
};

static void add_letter(struct parser *p, const struct cli_option *o)
{
	size_t len = strlen(p->letters);

	p->letters[len++] = o->letter;
	/* In -pSECRET the password must not be read as more letters. */
	if (o->arg || o->kind == CLI_PASSWORD)
		p->letters[len++] = ':';
	if (o->kind == CLI_PASSWORD)
		p->letters[len] = ':';
}

static void add(struct parser *p, const struct cli_option *o)
{
	for (; o && o->name && p->count < OPTIONS_MAX; o++, p->count++) {
		int has = o->arg                    ? required_argument
		          : o->kind == CLI_PASSWORD ? optional_argument
		                                    : no_argument;

		p->list[p->count] = o;
		p->longs[p->count] = (struct option){o->name, has, NULL, FIRST_VALUE + p->count};
		if (o->letter)
			add_letter(p, o);
	}
}

static const struct cli_option *find(const struct parser *p, int value)
{
	if (value >= FIRST_VALUE && value < FIRST_VALUE + p->count)
		return p->list[value - FIRST_VALUE];
	for (int i = 0; value && i < p->count; i++)
		if (p->list[i]->letter == value)
			return p->list[i];
	return NULL;
}

/* ---- values ------------------------------------------------------------------ */

static int bad_value(const struct parser *p, const struct cli_option *o, const char *text)
{
	return cli_misused(p->c, "--%s: \"%s\" is not %s", o->name, text,
	                   o->kind == CLI_NUMBER ? "a whole number"
	                   : o->kind == CLI_WAIT
	                           ? "a duration such as 10 (seconds), 500ms, 5m, or \"forever\""
	                           : "a duration such as 10 (seconds), 500ms, 5m, 1h, 2d");
}

static int out_of_range(const struct parser *p, const struct cli_option *o, const char *text)
{
	char least[CLI_DURATION_SIZE], most[CLI_DURATION_SIZE];

	if (o->kind == CLI_NUMBER)
		return cli_misused(p->c, "--%s: %s is out of range, %" PRId64 " to %" PRId64,
		                   o->name, text, o->min, o->max);
	return cli_misused(p->c, "--%s: %s is out of range, %s to %s", o->name, text,
	                   cli_show_duration(o->min, least), cli_show_duration(o->max, most));
}

static int take_duration(const struct parser *p, const struct cli_option *o, const char *text)
{
	int64_t *field = (int64_t *)((char *)p->ret + o->offset), ms = -1;

	if (o->kind != CLI_WAIT || strcmp(text, "forever") != 0) {
		if (!cli_read_duration(text, &ms))
			return bad_value(p, o, text);
		if (ms < o->min || ms > o->max)
			return out_of_range(p, o, text);
	}
	*field = ms;
	return CLI_GO_ON;
}

static int take_number(const struct parser *p, const struct cli_option *o, const char *text)
{
	uint64_t *field = (uint64_t *)((char *)p->ret + o->offset), number = 0;

	if (!cli_read_number(text, &number))
		return bad_value(p, o, text);
	if (number < (uint64_t)o->min || number > (uint64_t)o->max)
		return out_of_range(p, o, text);
	*field = number;
	return CLI_GO_ON;
}

static int take_setting(const struct parser *p, const struct cli_option *o, const char *text)
{
	char name[64] = "";

	for (size_t i = 0; o->name[i] && i < sizeof(name) - 1; i++)
		name[i] = (char)(o->name[i] == '-' ? '_' : o->name[i]);
	if (bizlock_set(p->c->lock, name, text) != BIZLOCK_OK)
		return cli_misused(p->c, "%s", bizlock_errmsg(p->c->lock));
	return CLI_GO_ON;
}

/* getopt_long() knows one value for each option. It takes up the second one, too, when optind
 * passes it; it moves none of the words that it has passed. */
static int take_key(const struct parser *p, const struct cli_option *o, const char *type)
{
	struct cli_keys *keys = (struct cli_keys *)((char *)p->ret + o->offset);

	if (optind >= p->c->argc)
		return cli_misused(p->c, "option --%s needs two values: %s", o->name, o->arg);
	if (keys->count >= CLI_KEYS_MAX)
		return cli_misused(p->c, "--%s: more than %d locks", o->name, CLI_KEYS_MAX);
	keys->list[keys->count++] = (bizlock_key){type, p->c->argv[optind++]};
	return CLI_GO_ON;
}

static int take_password(const struct parser *p, char *text)
{
	if (!text) {
		p->c->ask_password = true;
		return CLI_GO_ON;
	}
	explicit_bzero(text, strlen(text)); /* wipes it from the process list */
	return cli_misused(p->c, "a password on the command line can be seen by everybody: "
	                         "give -p alone to be asked, or put it into an option file");
}

/* Called by a thread of the library. */
static void show_trace(void *arg, const bizlock_trace *line)
{
	time_t seconds = line->time_us / 1000000;
	char clock[sizeof("23:59:60")];
	struct tm tm;

	(void)arg;
	localtime_r(&seconds, &tm);
	strftime(clock, sizeof(clock), "%H:%M:%S", &tm);
	cli_say("%s.%06d %s", clock, (int)(line->time_us % 1000000), line->text);
}

static int take_trace(const struct parser *p)
{
	int rc = bizlock_on_trace(p->c->lock, show_trace, NULL);

	return rc == BIZLOCK_OK ? CLI_GO_ON : cli_failed(p->c, rc);
}

static int take(const struct parser *p, const struct cli_option *o, char *text)
{
	switch (o->kind) {
	case CLI_FLAG:
		*((bool *)((char *)p->ret + o->offset)) = true;
		return CLI_GO_ON;
	case CLI_TEXT:
		*((const char **)((char *)p->ret + o->offset)) = text;
		return CLI_GO_ON;
	case CLI_NUMBER:
		return take_number(p, o, text);
	case CLI_DURATION:
	case CLI_WAIT:
		return take_duration(p, o, text);
	case CLI_SETTING:
		return take_setting(p, o, text);
	case CLI_KEY:
		return take_key(p, o, text);
	case CLI_PASSWORD:
		return take_password(p, text);
	case CLI_TRACE:
		return take_trace(p);
	case CLI_HELP:
		if (p->c->command)
			cli_help(p->c->command);
		else
			cli_help_all();
		break;
	case CLI_VERSION:
		printf("bizlock %s, library %s\n", BIZLOCK_VERSION, bizlock_version());
		break;
	}
	return CLI_DONE;
}

/* ---- mistakes ------------------------------------------------------------------ */

static int unknown_long(const struct parser *p, const char *word)
{
	struct cli_near near;
	char name[64];
	int alike = 0;

	snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
	near = cli_near_to(name);
	for (int i = 0; i < p->count; i++) {
		alike += strncmp(p->list[i]->name, name, strlen(name)) == 0;
		cli_near_try(&near, p->list[i]->name);
	}
	if (alike > 1)
		return cli_misused(p->c, "option --%s: more than one option begins like this",
		                   name);
	return cli_misused(p->c, "unknown option --%s%s%s%s", name,
	                   near.name ? ", did you mean --" : "", near.name ? near.name : "",
	                   near.name ? "?" : "");
}

/* Reports the mistake that getopt_long() found; answer is ':' or '?'. */
static int mistaken(const struct parser *p, int answer)
{
	const char *word = p->c->argv[optind - 1];
	const struct cli_option *o = find(p, optopt);

	if (answer == ':' && o)
		return cli_misused(p->c, "option --%s needs a value: %s", o->name, o->arg);
	if (o)
		return cli_misused(p->c, "option --%s takes no value", o->name);
	if (optopt)
		return cli_misused(p->c, "unknown option -%c", optopt);
	return unknown_long(p, word + strspn(word, "-"));
}

static int parse(struct cli *c, void *ret, const struct cli_option *own, const char *mode)
{
	struct parser p = {.c = c, .ret = ret};
	int answer, code = CLI_GO_ON;

	snprintf(p.letters, sizeof(p.letters), "%s:", mode);
	add(&p, own);
	add(&p, cli_common_options);
	add(&p, cli_connection_options);
	opterr = 0;
	optind = 0; /* GNU's way to begin anew */
	while (code == CLI_GO_ON &&
	       (answer = getopt_long(c->argc, c->argv, p.letters, p.longs, NULL)) != -1) {
		const struct cli_option *o =
		        answer == ':' || answer == '?' ? NULL : find(&p, answer);

		code = o ? take(&p, o, optarg) : mistaken(&p, answer);
	}
	c->argc -= optind;
	c->argv += optind;
	return code;
}

int cli_parse_first(struct cli *c)
{
	return parse(c, NULL, NULL, "+");
}

int cli_parse_to_word(struct cli *c, void *ret)
{
	return parse(c, ret, c->command->options, "+");
}

int cli_parse(struct cli *c, void *ret)
{
	const struct cli_command *command = c->command;
	int code = parse(c, ret, command->options, "");

	if (code != CLI_GO_ON)
		return code;
	if (c->argc < command->words_min)
		return cli_misused(c, "%s needs %s", command->name, command->words);
	if (c->argc > command->words_max)
		return cli_misused(c, "\"%s\" is one word too many", c->argv[command->words_max]);
	return CLI_GO_ON;
}
