/* bizlock exec, and the three processes that take part; and what other commands use of exec.
 *
 * The wrapper is this program. It holds the lock and passes signals on. It sends SIGTERM when the
 * lock cannot be renewed in time.
 *
 * The guard is a small process that starts the command. It sends SIGKILL to all processes that the
 * command has started, when the lease is nearly over that the wrapper last reported, or when the
 * wrapper has gone. So a wrapper that is stopped, hangs or was killed by SIGKILL leaves no process
 * at work without the lock. The guard has a name of its own, so that "pkill bizlock" does not find
 * it.
 *
 * The command is the program that is run, the leader of a process group. The guard is in that
 * group, too: it gets the signals that the command gets, and reports them to the wrapper. The
 * command dies with the guard by PR_SET_PDEATHSIG, which does not reach the command's children, and
 * which the kernel clears for a set-user-ID program.
 *
 * Processes whose parents have ended become children of the guard, or of the wrapper if the guard
 * has gone. So all processes of the command can be found, whatever sessions and groups they make,
 * unless both guard and wrapper are killed. Only root can kill a command that changes its user: run
 * exec as root, or within the program that changes the user. */
#ifndef CLI_EXEC_EXEC_H
#define CLI_EXEC_EXEC_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <termios.h>

#include "cli/cli.h"

/* The name of the owner; the suffix that the library adds makes the owner unique. */
#define EXEC_OWNER "exec"

/* ---- the guard --------------------------------------------------------------- */

struct cli_guard {
	pid_t pid; /* 0: none */
	int orders, reports;
};

struct cli_launch;

/* Starts the guard, which starts the command and reports that. false: errno. */
bool cli_guard_start(const struct cli_launch *l, struct cli_guard *ret);

/* Orders the guard to kill at that time of CLOCK_BOOTTIME, unless another order comes first. */
void cli_guard_order(const struct cli_guard *g, int64_t kill_at_ms);

/* Lets the guard exit, or ends it. true: the guard has killed. When this returns, the guard kills
 * nobody any more, and its reports can still be read. */
bool cli_guard_end(struct cli_guard *g);

enum cli_report_what {
	CLI_REPORT_NONE,
	CLI_REPORT_GONE,    /* the guard has gone */
	CLI_REPORT_STARTED, /* value: the number of the command and its group */
	CLI_REPORT_STOPPED, /* value: the signal that stopped the command */
	CLI_REPORT_ENDED,   /* value: the exit code, or minus the signal */
	CLI_REPORT_HEARD    /* value: a signal that the group got; sender: a process, 0: none */
};

struct cli_report {
	enum cli_report_what what;
	int value, sender;
};

/* The value of CLI_REPORT_ENDED. */
int cli_guard_tell(const siginfo_t *info);

enum cli_report_what cli_guard_read(const struct cli_guard *g, struct cli_report *ret);

/* Calls fn for each entry of this folder of /proc whose name is a number; fn may end what the entry
 * stands for. Takes no memory and no lock. */
void cli_read_numbers(int folder, void (*fn)(void *arg, int number), void *arg);

/* Sends SIGKILL once to all descendants of the process `root`, except the group `spared`. true:
 * there was something to kill. */
bool cli_tree_kill(pid_t root, pid_t spared);

/* Is one of these still there? */
bool cli_tree_lives(pid_t root, pid_t spared);

/* ---- the terminal -------------------------------------------------------------- */

struct cli_tty {
	int fd;       /* -1: there is none */
	bool alone;   /* we are not part of a pipeline */
	pid_t lent;   /* the group that has the terminal from us; 0: none */
	bool changed; /* `modes` has the modes before the terminal was lent */
	struct termios modes;
};

void cli_tty_begin(struct cli_tty *t);
void cli_tty_end(struct cli_tty *t);
bool cli_tty_is_ours(const struct cli_tty *t);     /* we are in the foreground */
bool cli_tty_is_anothers(const struct cli_tty *t); /* false: nobody's, too */
void cli_tty_lend(struct cli_tty *t, pid_t group);
void cli_tty_take_back(struct cli_tty *t, bool mend_modes);

/* ---- the command ----------------------------------------------------------------- */

#define CLI_EXEC_WAIT_MAX_MS 31622400000 /* a year */

struct cli_exec_options {
	int64_t wait_ms, lease_ms, min_hold_ms, max_hold_ms;
	uint64_t busy_code;
	uint64_t limit;
	const char *note;
	struct cli_keys more; /* behind the first key */
	bool verbose, shared, exclusive, nonblock, record, retry_failed;
};

/* "TYPE/ID (with TYPE/ID)" */
#define CLI_EXEC_NAME_SIZE (2 * (BIZLOCK_TYPE_MAX + 1 + BIZLOCK_ID_MAX) + sizeof(" (with )"))

#define EXEC_FILES_MAX 256

/* What the command is to inherit: the state of this process at its start. */
struct cli_inherited {
	sigset_t mask;
	struct sigaction child; /* SIGCHLD */
	int files[EXEC_FILES_MAX], file_count;
};

/* A signal that is passed on, unless the command has got it from the sender, too. */
struct cli_passing {
	int64_t due_ms, heard_ms; /* 0: not due, not heard */
	pid_t due_from, heard_from;
};

/* Why the command got SIGTERM, and gets SIGKILL at kill_at_ms. */
enum cli_ending {
	CLI_GOES_ON,
	CLI_HOLD_ENDS, /* --max-hold is over. The lock is held until the command is dead */
	CLI_LEASE_ENDS /* the lock could not be renewed */
};

struct cli_exec {
	struct cli *c;
	struct cli_keys keys;
	char name[CLI_EXEC_NAME_SIZE]; /* of all keys, as we show it */
	char **command;
	struct cli_exec_options o;
	struct cli_inherited inherited;
	struct cli_guard guard;
	struct cli_tty tty;
	int signals; /* signalfd */
	int wake;    /* eventfd: something has happened in another thread */

	int64_t began_ms; /* of cli_exec_now_ms(): the wait, */
	int64_t held_ms;  /* and the hold */
	bizlock_acquire_opts opts;
	bizlock_grant grants[CLI_KEYS_MAX];
	char *owner;                     /* as the row has it */
	int (*then)(struct cli_exec *x); /* completes the acquisition, in the same call */
	char ticket[BIZLOCK_EXPORT_MAX]; /* of the commands of tickets; "": the hold is not exported
	                                  */

	/* The call of the library that is under way, or the last one. */
	int (*call)(struct cli_exec *x);
	int call_rc;
	char call_message[1024]; /* of a failure */
	atomic_bool call_done;
	int came;            /* the signal that ended the acquisition; 0: none */
	int64_t leave_by_ms; /* when all calls have to be done; 0: not limited */

	pid_t child;      /* the command, and its group */
	int life;         /* pidfd of the command; -1: its end is known, or there is no pidfd */
	int64_t over_ms;  /* since when its end is known; 0: it is not */
	bool ended;       /* the command has ended, and its status is known */
	bool guard_stuck; /* the guard was stopped, and we killed it after the command's end */
	bool unguarded;   /* the guard was killed, by somebody else */
	bool left_over;   /* a process of the command could not be killed */
	bool awaits_tty;  /* the command stays stopped, because it does not have the terminal */
	enum cli_ending ending;
	int64_t kill_at_ms; /* if ending: by CLOCK_BOOTTIME */
	int signalled;      /* the signal that ended the command, 0: none */
	int status;         /* its exit code, 128 + signal */
	bool recorded;      /* the run's beginning is, or may be */
	bizlock_run_result result;
	struct cli_passing passing[NSIG];
	bool *ran; /* in shared memory: whether exec() succeeded; false if there is no such program
	            */
};

void cli_inherited_note(struct cli_inherited *ret);

/* Closes the files with these numbers. Takes no memory and no lock. */
void cli_close_files(unsigned first, unsigned last);

/* Checks the options that exclude each other. CLI_GO_ON or an exit code. */
int cli_exec_check_options(struct cli_exec *x);

/* Sets the keys: this one, and those of x->o.more. */
void cli_exec_set_keys(struct cli_exec *x, bizlock_key key);

/* Opens the client. CLI_GO_ON or an exit code. Ended by cli_exec_end(). */
int cli_exec_begin(struct cli_exec *x);

/* Closes the client, if signals are read by x->signals; else that is left to main(). */
void cli_exec_end(struct cli_exec *x);

/* Acquires the lock, and completes that by `then`, whose error is an error of the acquisition.
 * Refuses to wait for an exec around this process. Signals are read by x->signals from here on.
 * CLI_GO_ON or an exit code. */
int cli_exec_acquire(struct cli_exec *x, int (*then)(struct cli_exec *x));
int cli_exec_note_owner(struct cli_exec *x); /* sets x->owner */

/* What is left of the time to wait; -1: no limit. */
int64_t cli_exec_wait_left_ms(const struct cli_exec *x);

int64_t cli_exec_now_ms(void); /* CLOCK_BOOTTIME */
void cli_exec_wake(int fd);

/* Makes a call of the library, which may have to wait for a server, and hears signals meanwhile.
 * The first signal stops an acquisition, and limits the time as cli_exec_leave() does; a later
 * signal makes that time shorter. CLI_EXEC_LEFT: the call was not done in time and goes on; from
 * then on there are no more calls. */
#define CLI_EXEC_LEFT (-1)
int cli_exec_call(struct cli_exec *x, int (*call)(struct cli_exec *x));

/* Limits the time of all further calls to a few seconds from now on, in all. */
void cli_exec_leave(struct cli_exec *x);

/* Both record the run of which x->result tells the end, unless there is nothing to record; the end
 * comes before the release. They print why not, the first only with -v, and fail nothing. */
void cli_exec_record_begin(struct cli_exec *x);
void cli_exec_record_end(struct cli_exec *x);

/* Releases a lock under which the command has not run, or whose ticket nobody has got. */
void cli_exec_give_back(struct cli_exec *x);

struct cli_launch {
	const struct cli_exec *x;
	char **environment;
	pid_t wrapper;
	int go[2]; /* a pipe. A byte: begin; end of file: the wrapper has gone */
};

/* In the guard: makes the process that becomes the command. -1: errno. */
pid_t cli_launch(const struct cli_launch *l);

/* Starts the command; CLI_GO_ON or an exit code. */
int cli_exec_start(struct cli_exec *x);

/* Watches the command until it has ended. The lock is still held then, or lost. */
void cli_exec_watch(struct cli_exec *x);

/* Blocks the signals that count while waiting (false) or while the command runs (true); x->signals
 * reads them. */
bool cli_exec_catch(struct cli_exec *x, bool running);

/* Sends SIGKILL once to all that the command has started. true: there was something to kill. */
bool cli_exec_kill(const struct cli_exec *x);

/* Is one of them still there? */
bool cli_exec_lives(const struct cli_exec *x);

/* Reads the guard's remaining reports. */
void cli_exec_take_reports(struct cli_exec *x);

/* The signals that are passed on to the command. */
void cli_exec_passed(sigset_t *ret);

/* Milliseconds until the command is to be killed, unless the lease is renewed; and, of these, how
 * long the lease lets it live. */
int64_t cli_exec_rest_ms(const struct cli_exec *x);
int64_t cli_exec_lease_ms(const struct cli_exec *x);

#endif
