/* Locks as list, show, watch and break show them. */
#ifndef CLI_COMMAND_LOCKS_H
#define CLI_COMMAND_LOCKS_H

#include "cli/cli.h"

/* A copy of what bizlock_each() showed. */
struct cli_lock {
	char *biz_type, *biz_id, *owner, *note;
	uint64_t fence;
	int64_t left_ms, held_ms;
	uint32_t depth, flags, slot, limit;
	unsigned waiting; /* connections, at the first row of a lock that is shared */
};

struct cli_locks {
	struct cli_lock *list;
	size_t count, room;
	size_t max;                 /* 0: all */
	bool stale_only, held_only; /* what is to be kept */
	bool more;                  /* than max */
	bool failed;                /* out of memory */
};

/* For bizlock_each() and bizlock_look(); arg: a struct cli_locks. */
int cli_locks_keep(void *arg, const bizlock_info *info);
void cli_locks_free(struct cli_locks *locks);

/* Counts those who wait, in each live lock. An error of the library. */
int cli_locks_count_waiting(bizlock *lock, struct cli_locks *locks);

/* "held", "resting" (released, for bizlock_acquire_opts.min_hold_ms), "stale". */
const char *cli_lock_state(const struct cli_lock *lock);

/* "shared", "exclusive" */
const char *cli_lock_mode(const struct cli_lock *lock);

/* Whether the slot says something: without a limit it is any number. */
bool cli_lock_has_slot(const struct cli_lock *lock);

/* The parts of `name@pid.nonce@host`, each "" where the owner is not of that form. */
struct cli_owner {
	char name[128], pid[24], host[128];
};

void cli_owner_read(const char *owner, struct cli_owner *ret);

enum cli_form { CLI_FORM_TABLE, CLI_FORM_WATCH, CLI_FORM_JSON };

/* As a table, with how many wait (watch), or as JSON. width: of the terminal, 0: any.
 * To be freed; NULL: out of memory. */
char *cli_locks_text(const struct cli_locks *locks, enum cli_form form, size_t width);

/* Prints them; an exit code. */
int cli_print_locks(const struct cli_locks *locks, bool json);

#endif
