#define _GNU_SOURCE 1
#include "call.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "patience.h"
#include "world.h"

#define LOOKS 15 /* in a row, some milliseconds apart */

/* A test that fails leaves the stack on which its calls lie, while their threads go on. So each
 * works on a copy, and tells what came of it no more once the calls are abandoned: it would write
 * into whatever runs on that stack by then. */
static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;
static bool abandoned;

struct flight {
	struct call *call, own;
};

void calls_abandon(void)
{
	pthread_mutex_lock(&telling);
	abandoned = true;
	pthread_mutex_unlock(&telling);
}

static void tell_begin(struct flight *f)
{
	pthread_mutex_lock(&telling);
	if (!abandoned)
		atomic_store(&f->call->tid, gettid());
	pthread_mutex_unlock(&telling);
}

static void tell_end(struct flight *f)
{
	struct call *c = f->call;

	pthread_mutex_lock(&telling);
	if (!abandoned) {
		c->grant = f->own.grant;
		c->rc = f->own.rc;
		c->ended = f->own.ended;
		memcpy(c->errmsg, f->own.errmsg, sizeof(c->errmsg));
		atomic_store(&c->done, true);
	}
	pthread_mutex_unlock(&telling);
}

static int send(struct call *c)
{
	if (c->releases)
		return bizlock_release(c->b, c->key, c->opts.owner, NULL);
	if (c->set)
		return bizlock_acquire_all(c->b, c->set->keys, c->set->n, &c->opts, c->set->grants);
	return bizlock_acquire(c->b, c->key, &c->opts, &c->grant);
}

static void *run(void *arg)
{
	struct flight *f = arg;
	struct call *c = &f->own;

	tell_begin(f);
	c->rc = send(c);
	c->ended = now_ms();
	if (c->rc != BIZLOCK_OK && c->rc != BIZLOCK_CANCELLED)
		snprintf(c->errmsg, sizeof(c->errmsg), "%s", bizlock_errmsg(c->b));
	tell_end(f);
	free(f);
	return NULL;
}

void call_prepare_with(struct call *c, bizlock *b, struct call_args args)
{
	*c = (struct call){.b = b,
	                   .key = KEY(args.id),
	                   .set = args.set,
	                   .opts = BIZLOCK_ACQUIRE_OPTS_INIT,
	                   .grant = BIZLOCK_GRANT_INIT};
	c->opts.wait_ms = args.wait_ms;
	c->opts.owner = args.owner;
}

void call_go(struct call *c)
{
	struct flight *f = malloc(sizeof(*f));

	if (!f)
		die("no memory");
	*f = (struct flight){.call = c, .own = *c};
	if (pthread_create(&c->thread, NULL, run, f) != 0)
		die("no thread");
}

void call_start_with(struct call *c, bizlock *b, struct call_args args)
{
	call_prepare_with(c, b, args);
	call_go(c);
}

void call_start_release(struct call *c)
{
	c->releases = true;
	atomic_store(&c->tid, 0);
	atomic_store(&c->done, false);
	call_go(c);
}

static bool asleep(pid_t tid)
{
	char path[64], stat[256] = "";
	FILE *in;
	char *state;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	in = fopen(path, "r");
	if (!in)
		return false;
	if (!fgets(stat, sizeof(stat), in))
		stat[0] = '\0';
	fclose(in);
	state = strrchr(stat, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

bool call_blocks_or_ends(const struct call *c)
{
	int looks = 0;

	for (int64_t end = now_ms() + PATIENCE_MS; looks < LOOKS; looks++) {
		if (atomic_load(&c->done))
			return false;
		if (!pause_before(end))
			die("the call does not wait");
		if (!atomic_load(&c->tid) || !asleep(c->tid))
			looks = -1;
	}
	return true;
}

void call_blocks(const struct call *c)
{
	if (!call_blocks_or_ends(c))
		die("the call does not wait");
}

int call_join(struct call *c)
{
	eventually(atomic_load(&c->done));
	pthread_join(c->thread, NULL);
	return c->rc;
}
