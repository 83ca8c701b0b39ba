/* The functions and types that the commands of bizlock(1) share. A command is a line of the
 * table in commands.c: it parses its words, opens the client, and returns an exit code. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <bizlock.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cli/exits.h"

struct cli_command;

struct cli {
	const struct cli_command *command; /* NULL: none chosen yet */
	bizlock *lock;
	int argc; /* the words; before cli_parse() also the options, with the command's name first
	           */
	char **argv;
	bool ask_password;
	bool pipe_ignored; /* our parent process had SIGPIPE ignored */
	int die_by;        /* the signal that this process is to die by; 0: none */
	bool left;         /* a thread is still in a call of `lock`, and nobody waits for it */
};

/* ---- options ------------------------------------------------------------- */

enum cli_kind {
	CLI_FLAG,     /* bool */
	CLI_TEXT,     /* const char * */
	CLI_NUMBER,   /* uint64_t, from min to max */
	CLI_DURATION, /* int64_t, kept in milliseconds, from min to max */
	CLI_WAIT,     /* as CLI_DURATION, or -1 for "forever" */
	CLI_SETTING,  /* an option of the library: bizlock_set(), '-' turned into '_' */
	CLI_KEY,      /* two words, added to a struct cli_keys */
	CLI_PASSWORD, /* asks for the password */
	CLI_TRACE,
	CLI_HELP,
	CLI_VERSION
};

#define CLI_KEYS_MAX 256 /* of bizlock_acquire_all() */

struct cli_keys {
	bizlock_key list[CLI_KEYS_MAX];
	size_t count;
};

struct cli_option {
	const char *name;
	char letter; /* NUL: none */
	enum cli_kind kind;
	size_t offset; /* in the command's own struct */
	int64_t min, max;
	const char *arg, *help; /* arg NULL: no argument. help NULL: another name of an option */
};

struct cli_command {
	const char *name, *words, *summary;
	int words_min, words_max;
	const struct cli_option *options; /* ends with one that has no name */
	const char *more;                 /* more help, or NULL */
	int (*run)(struct cli *c);
};

#define CLI_GO_ON (-1)

/* Reads the options of the command into *ret, its struct, which has the defaults;
 * c->argv becomes the words. CLI_GO_ON; else the exit code: help was shown, or a
 * mistake was reported. */
int cli_parse(struct cli *c, void *ret);

/* Reads only the options before the first word; any words will do. */
int cli_parse_to_word(struct cli *c, void *ret);

/* The same for options before the command; c->argv begins with its name. */
int cli_parse_first(struct cli *c);

extern const struct cli_option cli_common_options[], cli_connection_options[];
extern const struct cli_command cli_commands[]; /* ends with one that has no name */

/* Sets c->command. CLI_GO_ON; CLI_USAGE: there is no such command, which has been reported. */
int cli_choose(struct cli *c, const char *name);

/* BIZ_TYPE and BIZ_ID, the first two words. */
bizlock_key cli_key(const struct cli *c);

/* ---- the server ------------------------------------------------------------ */

/* Asks for the password if -p was given, and opens the client. CLI_GO_ON, or the exit code. */
int cli_open(struct cli *c);

/* The same with the result of a call of bizlock_open(). */
int cli_opened(const struct cli *c, int rc);

/* Reads the options as cli_parse() does, and opens the client. */
int cli_begin(struct cli *c, void *ret);

/* Asks for the password: for commands that need no open client. */
int cli_password(struct cli *c);

/* Prints the library's message about its failed call; returns the exit code. */
int cli_failed(const struct cli *c, int rc);

/* ---- speaking -------------------------------------------------------------- */

/* A line on stdout, or on stderr; control characters are made visible. */
__attribute__((format(printf, 1, 2))) void cli_print(const char *format, ...);
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/* Prints the reason, and returns the code. */
__attribute__((format(printf, 2, 3))) int cli_give_up(enum cli_exit code, const char *format, ...);

/* The same with CLI_USAGE, and a hint at --help. */
__attribute__((format(printf, 2, 3))) int cli_misused(const struct cli *c, const char *format, ...);

/* A copy of a stranger's text that can harm neither a terminal nor a library that goes by the
 * locale. \xNN replaces control characters, marks that change the direction of writing, and broken
 * UTF-8; in a locale that is not UTF-8, also all that is not ASCII. To be freed; NULL: out of
 * memory. */
char *cli_safe(const char *text);

/* The same as a JSON string, in its quotes: \uNNNN, and U+FFFD for broken UTF-8. JSON is
 * UTF-8 in every locale. */
char *cli_json_string(const char *text);

/* The same as the value of a label in Prometheus' text format, between its quotes: "\xNN", with its
 * backslash escaped as every backslash is. UTF-8 in every locale. Texts that differ may have the
 * same value. To be freed; NULL: out of memory. */
char *cli_label_value(const char *text);

/* How many of the `len` bytes, which cli_safe() made, fit into `columns` of a terminal. */
size_t cli_fit(const char *text, size_t len, unsigned columns);

/* Opens /dev/null in place of standard files that are closed: otherwise a connection to
 * the server could get number 1, and printf() would write to it. */
void cli_guard_files(void);

/* Ignores SIGPIPE from here on: a closed pipe or connection must not end us without a message. */
void cli_mind_pipes(struct cli *c);

/* Flushes standard output. Returns `code`, unless the output could not be written. */
int cli_finish(const struct cli *c, int code);

void cli_help(const struct cli_command *command);
void cli_help_all(void);
void cli_help_connection(void);
void cli_help_exits(void);

/* ---- small things ----------------------------------------------------------- */

/* "500ms", "1.5s", "5m", "5min", "1h", "1hour", "2d"; without a unit: seconds. */
bool cli_read_duration(const char *text, int64_t *ret_ms);
bool cli_read_number(const char *text, uint64_t *ret);

/* Enough for any duration. */
#define CLI_DURATION_SIZE 32

/* "12ms", "1.5s", "2m 3s", "5h 7m", "3d 4h". */
const char *cli_show_duration(int64_t ms, char buf[CLI_DURATION_SIZE]);

/* Finds the name that is nearest to `word` among the names given to cli_near_try(). */
struct cli_near {
	const char *word, *name; /* name NULL: none is near */
	unsigned distance;
};

struct cli_near cli_near_to(const char *word);
void cli_near_try(struct cli_near *near, const char *name);

/* Reads a password from the terminal, without echo. *ret is to be wiped and freed. false: no
 * terminal, or the end of input; errno says why. */
bool cli_ask_secret(const char *prompt, char **ret);

#endif
