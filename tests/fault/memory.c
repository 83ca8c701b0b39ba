/* The Nth allocation of the library fails, for every N. The call answers NOMEM and does nothing by
 * halves, and the same client works again right after. The program is linked with --wrap, so every
 * allocation comes here. */
#define _GNU_SOURCE 1
#include <bizlock_async.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "stale.h"
#include "world.h"

#define ROUNDS_MAX 10000 /* there are only some dozens of allocations */
#define STALE_MS 7200000

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
char *__wrap_strdup(const char *s);

static atomic_int left; /* allocations until one fails; 0: none will */

static bool fails(void)
{
	return atomic_load(&left) > 0 && atomic_fetch_sub(&left, 1) == 1;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

char *__wrap_strdup(const char *s)
{
	return fails() ? NULL : __real_strdup(s);
}

/* ---- what is tried ------------------------------------------------------------ */

enum { HOLDS = 6 };

struct round {
	bizlock *b;
	bool open;
	unsigned refused;
	unsigned depth[HOLDS];
};

/* The thread's hold, a named owner's, one that is asked for and dispatched, shared locks, and a set
 * that is asked for. */
static const struct {
	const char *owner, *id;
	bool asked;
	uint32_t flags, limit;
	const char *second; /* another key, or NULL */
} holds[HOLDS] = {
        {NULL, "thread", false, 0, 0, NULL},
        {"task-1", "named", false, 0, 0, NULL},
        {"task-2", "asked", true, 0, 0, NULL},
        {"task-3", "shared", false, BIZLOCK_SHARED, 0, NULL},
        {"task-4", "limited", false, BIZLOCK_SHARED, 2, NULL},
        {"task-5", "first", true, 0, 0, "second"},
};

/* Was the call done? If not, it must say that memory was out. */
static bool done(struct round *r, const char *what, int rc)
{
	if (rc == BIZLOCK_OK)
		return true;
	if (rc != BIZLOCK_NOMEM)
		die("%s: %s, not BIZLOCK_NOMEM: %s", what, bizlock_err_name(rc),
		    bizlock_errmsg(r->b));
	r->refused++;
	return false;
}

struct answer {
	bool told;
	int rc;
};

static void note_answer(void *arg, const bizlock_result *result)
{
	struct answer *a = arg;

	if (a->told)
		die("told twice");
	*a = (struct answer){true, result->rc};
}

/* rc: of the start. What was not started is not told. */
static int answer_of(struct round *r, const struct answer *a, int rc)
{
	struct pollfd fd = {.fd = bizlock_fd(r->b), .events = POLLIN};

	for (int64_t end = now_ms() + PATIENCE_MS; rc == BIZLOCK_OK && !a->told;) {
		if (now_ms() > end)
			die("a request was never told");
		poll(&fd, 1, 50);
		rc = bizlock_dispatch(r->b, NULL);
	}
	return rc == BIZLOCK_OK ? a->rc : rc;
}

static void acquire(struct round *r, int who)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_key keys[] = {KEY(holds[who].id), KEY(holds[who].second)};
	struct answer a = {.told = false};
	int rc;

	opts.owner = holds[who].owner;
	opts.flags = holds[who].flags;
	opts.limit = holds[who].limit;
	opts.wait_ms = PATIENCE_MS;
	if (holds[who].second)
		rc = answer_of(
		        r, &a,
		        bizlock_acquire_all_start(r->b, keys, 2, &opts, note_answer, &a, NULL));
	else if (holds[who].asked)
		rc = answer_of(r, &a,
		               bizlock_acquire_start(r->b, *keys, &opts, note_answer, &a, NULL));
	else
		rc = bizlock_acquire(r->b, *keys, &opts, NULL);
	if (done(r, "acquire", rc))
		r->depth[who]++;
}

/* The level is given back, even if memory is out; but a release that was not even started is
 * none. */
static void release(struct round *r, int who)
{
	bizlock_key keys[] = {KEY(holds[who].id), KEY(holds[who].second)};
	struct answer a = {.told = false};
	int rc;

	if (r->depth[who] == 0)
		return;
	if (holds[who].asked) {
		rc = bizlock_release_all_start(r->b, keys, holds[who].second ? 2 : 1,
		                               holds[who].owner, note_answer, &a, NULL);
		r->depth[who] -= rc == BIZLOCK_OK;
		rc = answer_of(r, &a, rc);
	} else {
		r->depth[who]--;
		rc = bizlock_release(r->b, *keys, holds[who].owner, NULL);
	}
	done(r, "release", rc);
}

static int see_migration(void *arg, const bizlock_migration *m)
{
	(void)arg;
	return m->pending;
}

static int see_finding(void *arg, const bizlock_finding *f)
{
	(void)arg;
	if (f->level == BIZLOCK_BAD)
		die("doctor: %s: %s", f->name, f->text);
	return 0;
}

static int see_waiter(void *arg, const bizlock_waiter *waiter)
{
	(void)arg;
	die("connection %llu waits", (unsigned long long)waiter->connection);
}

static int see_run(void *arg, const bizlock_run *run)
{
	(void)arg;
	die("a run of %s", run->biz_type);
}

static void look_after(struct round *r)
{
	bizlock_key key = KEY("thread");
	char text[4096];

	done(r, "grants", bizlock_grants(r->b, "app", text, sizeof(text), NULL));
	done(r, "each_migration", bizlock_each_migration(r->b, see_migration, NULL));
	done(r, "doctor", bizlock_doctor(r->b, see_finding, NULL));
	done(r, "grants_routines", bizlock_grants_routines(r->b, "app", text, sizeof(text), NULL));
	if (!r->open)
		return;
	done(r, "waiters", bizlock_waiters(r->b, &key, 1, see_waiter, NULL));
	done(r, "each_run", bizlock_each_run(r->b, NULL, NULL, see_run, NULL));
}

/* A hold that is renewed, verified, turned into a shared one, and given to another owner. What was
 * refused for want of memory is as it was before. */
static void pass_on(struct round *r)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock_key key = KEY("passed on");
	const char *owner = "task-6";
	struct answer a = {.told = false};
	char text[BIZLOCK_EXPORT_MAX];

	opts.owner = owner;
	if (!done(r, "acquire", bizlock_acquire(r->b, key, &opts, &grant)))
		return;
	done(r, "renew", bizlock_renew(r->b, key, owner, 0));
	done(r, "renew_start",
	     answer_of(r, &a, bizlock_renew_start(r->b, key, owner, 0, note_answer, &a, NULL)));
	done(r, "verify", bizlock_verify(r->b, key, owner));
	done(r, "verify_fence", bizlock_verify_fence(r->b, key, grant.fence));
	if (done(r, "export", bizlock_export(r->b, key, owner, text, sizeof(text)))) {
		owner = "task-7";
		while (!done(r, "import", bizlock_import(r->b, text, owner, NULL)))
			;
	}
	done(r, "downgrade", bizlock_downgrade(r->b, key, owner));
	done(r, "release", bizlock_release(r->b, key, owner, NULL));
}

static void reap(struct round *r)
{
	done(r, "reap", bizlock_reap(r->b, NULL, NULL));
}

static void try_all(struct round *r)
{
	look_after(r);
	if (!r->open)
		r->open = done(r, "open", bizlock_open(r->b));
	for (int who = 0; who < HOLDS && r->open; who++) {
		acquire(r, who);
		acquire(r, who);
		release(r, who);
		release(r, who);
	}
	if (!r->open)
		return;
	pass_on(r);
	reap(r);
}

/* False: everything went well, because the call has no Nth allocation. */
static bool try_with(const struct world *w, int n)
{
	struct round r = {.b = client_new(w, NULL)};
	bool failed;

	stale_leases(w->admin, "old", .rows = 3, .ago_ms = STALE_MS);
	atomic_store(&left, n);
	try_all(&r);
	failed = atomic_exchange(&left, 0) == 0;
	r.refused = 0;
	try_all(&r);
	for (int who = 0; who < HOLDS; who++)
		while (r.depth[who])
			release(&r, who);
	if (r.refused)
		die("allocation %d: memory is back, and the client says it is out", n);
	bizlock_close(r.b);
	eventually(db_number(w->admin, "SELECT COUNT(*) FROM biz_lock WHERE owner <> ''") == 0);
	return failed;
}

static void try_new(void)
{
	bizlock *b = NULL;
	int n = 0, rc;

	do {
		atomic_store(&left, ++n);
		rc = bizlock_new(&b);
		atomic_store(&left, 0);
		if (rc != BIZLOCK_OK && (rc != BIZLOCK_NOMEM || b))
			die("new: allocation %d: %s", n, bizlock_err_name(rc));
	} while (rc != BIZLOCK_OK);
	bizlock_close(b);
}

int main(void)
{
	struct server at = server_from_env();
	struct world w;
	int n = 1;

	world_make(&w, &at);
	world_migrate(&w);
	try_new();
	while (try_with(&w, n) && n < ROUNDS_MAX)
		n++;
	printf("%d allocations failed, one at a time\n", n - 1);
	world_drop(&w);
	return n > 10 && n < ROUNDS_MAX ? 0 : 1;
}
