/* How bizlock exec and bizlock acquire acquire their lock, and refuse to wait for an exec around
 * them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/exec/exec.h"

/* ---- nested execs ------------------------------------------------------------------- */

static bool is_outer(const char *owner)
{
	const char *list = getenv("BIZLOCK_OUTER");
	size_t len = strlen(owner);

	while (list && *list && len > 0) {
		size_t word = strcspn(list, " ");

		if (word == len && strncmp(list, owner, len) == 0)
			return true;
		list += word + strspn(list + word, " ");
	}
	return false;
}

struct sight {
	const struct cli_exec *x;
	const char *name; /* of the lock */
	uint64_t alone;   /* the fence of an exec around us that holds it exclusively; 0: none */
	uint64_t shares;  /* the fence of an exec around us that shares the lock; 0: none */
	unsigned sharers; /* how many execs around us share the lock */
	bool is_wanted;   /* somebody waits for the sharers to leave */
};

static void show(const char *name, const bizlock_info *info)
{
	char left[CLI_DURATION_SIZE];

	cli_show_duration(info->left_ms, left);
	if (*info->owner)
		cli_say("%s is held by %s (fence %" PRIu64 "), its lease ends in %s", name,
		        info->owner, info->fence, left);
	else
		cli_say("%s is at rest for another %s", name, left);
}

static int look(void *arg, const bizlock_info *info)
{
	struct sight *s = arg;
	bool shares = info->flags & BIZLOCK_SHARED;

	if (info->left_ms <= 0)
		return 0;
	if (is_outer(info->owner)) {
		*(shares ? &s->shares : &s->alone) = info->fence;
		s->sharers += shares;
		return 0;
	}
	s->is_wanted |= !shares && info->depth == 0 && *info->owner;
	if (s->x->o.verbose)
		show(s->name, info);
	return 0;
}

/* Would this exec wait for an exec around it, which waits for its end? A sharer does not wait for
 * other sharers, if the limit has room; but it waits behind a contender for the exclusive lock,
 * which waits for the exec around us. */
static bool would_wait_for_itself(const struct sight *s)
{
	const struct cli_exec_options *o = &s->x->o;

	if (s->alone || s->sharers == 0)
		return s->alone;
	return !(o->shared || o->limit) || s->is_wanted || (o->limit && s->sharers >= o->limit);
}

/* An exec that would wait for an exec around it is refused. It is not run under the outer lock,
 * whose lease, minimum and end may differ from what is asked for here. The rows decide, whatever
 * the database: an owner names one client of one process. */
static int refuse_nested_key(const struct cli_exec *x, bizlock_key key)
{
	char name[CLI_EXEC_NAME_SIZE];
	struct sight s = {.x = x, .name = name};
	int rc;

	snprintf(name, sizeof(name), "%s/%s", key.biz_type, key.biz_id);
	rc = bizlock_look(x->c->lock, key, look, &s);
	if (rc != BIZLOCK_OK)
		return cli_failed(x->c, rc);
	if (!would_wait_for_itself(&s))
		return CLI_GO_ON;
	return cli_give_up(CLI_NESTED,
	                   "%s is held by the exec that runs this one (fence %" PRIu64
	                   ")%s: waiting for it would never end",
	                   name, s.alone ? s.alone : s.shares,
	                   !s.alone && s.is_wanted ? ", and somebody waits to have it alone" : "");
}

static int refuse_nested(const struct cli_exec *x)
{
	int code = CLI_GO_ON;

	if (!getenv("BIZLOCK_OUTER") && !x->o.verbose)
		return CLI_GO_ON;
	for (size_t i = 0; i < x->keys.count && code == CLI_GO_ON; i++)
		code = refuse_nested_key(x, x->keys.list[i]);
	return code;
}

/* ---- acquiring ------------------------------------------------------------------------ */

static int keep_owner(void *arg, const bizlock_info *info)
{
	struct cli_exec *x = arg;

	if (info->fence != x->grants[0].fence || !info->flags != !x->opts.flags)
		return 0;
	x->owner = strdup(info->owner);
	return 1;
}

/* All keys have the same owner. */
int cli_exec_note_owner(struct cli_exec *x)
{
	int rc = bizlock_look(x->c->lock, x->keys.list[0], keep_owner, x);

	return rc == BIZLOCK_OK && !x->owner ? BIZLOCK_LOST : rc;
}

static int acquire(struct cli_exec *x)
{
	int rc = x->keys.count == 1
	                 ? bizlock_acquire(x->c->lock, x->keys.list[0], &x->opts, x->grants)
	                 : bizlock_acquire_all(x->c->lock, x->keys.list, x->keys.count, &x->opts,
	                                       x->grants);

	return rc == BIZLOCK_OK ? x->then(x) : rc;
}

static int not_acquired(const struct cli_exec *x, int rc)
{
	bool busy = rc == BIZLOCK_BUSY || rc == BIZLOCK_TIMEOUT;

	if (!busy || x->o.verbose)
		cli_say("%s", x->call_message);
	if (busy && x->o.busy_code <= 255)
		return (int)x->o.busy_code;
	return cli_exit_of(rc);
}

static void tell_acquired(const struct cli_exec *x)
{
	char waited[CLI_DURATION_SIZE];

	cli_show_duration(x->held_ms - x->began_ms, waited);
	for (size_t i = 0; i < x->keys.count; i++) {
		const bizlock_key *key = &x->keys.list[i];

		if (x->o.verbose)
			cli_say("%s/%s acquired after %s, fence %" PRIu64, key->biz_type,
			        key->biz_id, waited, x->grants[i].fence);
		if (x->grants[i].flags & BIZLOCK_TOOK_OVER)
			cli_say("%s/%s was taken over: its last holder never released it",
			        key->biz_type, key->biz_id);
	}
}

/* A signal has ended the wait. The lock may have been acquired nevertheless. */
static int not_wanted(struct cli_exec *x, int rc)
{
	x->c->die_by = x->came;
	x->result.exit_signal = (uint32_t)x->came;
	if (rc == CLI_EXEC_LEFT)
		cli_say("%s: the server does not answer; if the lock was acquired, it stays locked "
		        "until its lease ends",
		        x->name);
	else if (rc == BIZLOCK_OK)
		cli_exec_give_back(x);
	return 128 + x->came;
}

/* The time that passed while the server was waited for counts, too. */
int64_t cli_exec_wait_left_ms(const struct cli_exec *x)
{
	int64_t left = x->o.wait_ms - (cli_exec_now_ms() - x->began_ms);

	if (x->o.wait_ms <= 0)
		return x->o.wait_ms;
	return left > 0 ? left : 1;
}

int cli_exec_acquire(struct cli_exec *x, int (*then)(struct cli_exec *x))
{
	int rc = refuse_nested(x);

	if (rc != CLI_GO_ON)
		return rc;
	if (!cli_exec_catch(x, false))
		return CLI_SYSTEM;
	x->then = then;
	x->grants[0] = (bizlock_grant)BIZLOCK_GRANT_INIT;
	x->opts = (bizlock_acquire_opts)BIZLOCK_ACQUIRE_OPTS_INIT;
	x->opts.wait_ms = cli_exec_wait_left_ms(x);
	x->opts.lease_ms = (uint32_t)x->o.lease_ms;
	x->opts.min_hold_ms = (uint32_t)x->o.min_hold_ms;
	x->opts.flags = x->o.shared || x->o.limit ? BIZLOCK_SHARED : 0;
	x->opts.limit = (uint32_t)x->o.limit;
	x->opts.owner = EXEC_OWNER;
	x->opts.note = x->o.note;
	rc = cli_exec_call(x, acquire);
	x->held_ms = cli_exec_now_ms();
	if (x->came)
		return not_wanted(x, rc);
	if (rc != BIZLOCK_OK)
		return not_acquired(x, rc);
	tell_acquired(x);
	cli_exec_record_begin(x);
	return x->came ? not_wanted(x, rc) : CLI_GO_ON;
}
