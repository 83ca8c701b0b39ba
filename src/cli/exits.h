/* The exit codes of bizlock(1), from one list. Numbers are never reused. They are those of
 * sysexits.h where one fits, and 124 of timeout(1). The other codes are left to the command of
 * exec; 126 and 127 mean "cannot be run" and "not found", as in the shell, and 128 + n that
 * signal n ended the command. */
#ifndef CLI_EXITS_H
#define CLI_EXITS_H

#define CLI_EXITS(X)                                                                               \
	X(DONE, 0, "done; exec: the command's own status, 128 + n if signal n ended it")           \
	X(NO, 1, "not held (show, break), overdue, or amiss (doctor, migrate --status)")           \
	X(USAGE, 64, "wrong options or arguments")                                                 \
	X(UNREACHABLE, 69, "the database could not be reached, or no longer")                      \
	X(INTERNAL, 70, "out of memory, or a mistake of this program")                             \
	X(SYSTEM, 71, "the system refused a process, a terminal or the like")                      \
	X(OUTPUT, 74, "standard output, or the file of --output, could not be written")            \
	X(BUSY, 75, "somebody else holds the lock (exec: -E chooses another)")                     \
	X(REFUSED, 76, "the server refused a statement")                                           \
	X(CONFIG, 78, "option files, user, password, tables or the server do not fit")             \
	X(LOST, 80, "exec, renew, release: the lock was lost; reap: its own lock was")             \
	X(NESTED, 81, "exec, acquire: the lock is held by the exec that runs this one")            \
	X(OVERRUN, 82, "exec: the command was ended, because --max-hold was over")                 \
	X(TIMEOUT, 124, "the lock was not free in time (exec: -E chooses another)")

enum cli_exit {
#define CLI_EXIT_ENUM_(name, number, text) CLI_##name = number,
	CLI_EXITS(CLI_EXIT_ENUM_)
#undef CLI_EXIT_ENUM_
};

/* For an error of the library. */
enum cli_exit cli_exit_of(int bizlock_error);

/* For an error of bizlock_open(). Another try can help only with CLI_UNREACHABLE. */
enum cli_exit cli_exit_of_open(int bizlock_error, const char *message);

#endif
