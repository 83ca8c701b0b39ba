/* A copy of the locks, for list, show, watch and break: collect, describe, print. */
#ifndef CLI_COMMAND_LOCKS_H
#define CLI_COMMAND_LOCKS_H

#include "cli/cli.h"

/* A copy of a bizlock_info. */
struct cli_lock {
	char *biz_type, *biz_id, *owner, *note;
	uint64_t fence;
	int64_t left_ms, held_ms;
	uint32_t depth, flags, slot, limit;
	unsigned waiting; /* connections that wait; of a shared lock, only in its first row */
};

struct cli_locks {
	struct cli_lock *list;
	size_t count, room;
	size_t max;                 /* 0: all */
	bool stale_only, held_only; /* which locks to keep */
	bool more;                  /* there are more than max */
	bool failed;                /* out of memory */
};

/* For bizlock_each() and bizlock_look(); arg: a struct cli_locks. */
int cli_locks_keep(void *arg, const bizlock_info *info);
void cli_locks_free(struct cli_locks *locks);

/* Sets `waiting` of each live lock. Returns an error of the library. */
int cli_locks_count_waiting(bizlock *lock, struct cli_locks *locks);

/* "held", "resting" (released, for bizlock_acquire_opts.min_hold_ms), "stale". */
const char *cli_lock_state(const struct cli_lock *lock);

/* "shared", "exclusive" */
const char *cli_lock_mode(const struct cli_lock *lock);

/* Whether the slot has a meaning: without a limit it is any number. */
bool cli_lock_has_slot(const struct cli_lock *lock);

/* The parts of an owner `name@pid.nonce@host`; each is "" if the owner has another form. */
struct cli_owner {
	char name[128], pid[24], host[128];
};

void cli_owner_read(const char *owner, struct cli_owner *ret);

/* The lock was exported: whoever has its ticket has the lock. Process and host are those that made
 * the ticket. */
bool cli_owner_is_ticket(const struct cli_owner *o);

enum cli_form { CLI_FORM_TABLE, CLI_FORM_WATCH, CLI_FORM_JSON };

/* The locks as a table, as a table with the number of waiters (watch), or as JSON. width: of the
 * terminal, 0: any. To be freed; NULL: out of memory. */
char *cli_locks_text(const struct cli_locks *locks, enum cli_form form, size_t width);

/* Prints the locks; returns an exit code. */
int cli_print_locks(const struct cli_locks *locks, bool json);

#endif
