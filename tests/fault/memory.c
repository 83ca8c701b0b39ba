/* The Nth allocation of the library fails, for every N. The call answers NOMEM and does nothing by
 * halves, and the same client works again right after. The program is linked with --wrap, so every
 * allocation comes here. */
#define _GNU_SOURCE 1
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

struct round {
	bizlock *b;
	bool open;
	unsigned refused;
	unsigned depth[2]; /* of the thread's hold, and of a named owner's */
};

static const char *const owners[2] = {NULL, "task-1"};

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

static void acquire(struct round *r, int who)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	const char *id = who ? "named" : "thread";

	opts.owner = owners[who];
	opts.wait_ms = PATIENCE_MS;
	if (done(r, "acquire", bizlock_acquire(r->b, KEY(id), &opts, NULL)))
		r->depth[who]++;
}

/* The level is given back, even if memory is out. */
static void release(struct round *r, int who)
{
	const char *id = who ? "named" : "thread";

	if (r->depth[who] == 0)
		return;
	r->depth[who]--;
	done(r, "release", bizlock_release(r->b, KEY(id), owners[who], NULL));
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

static void look_after(struct round *r)
{
	bizlock_key key = KEY("thread");
	char text[4096];

	done(r, "grants", bizlock_grants(r->b, "app", text, sizeof(text), NULL));
	done(r, "each_migration", bizlock_each_migration(r->b, see_migration, NULL));
	done(r, "doctor", bizlock_doctor(r->b, see_finding, NULL));
	if (r->open)
		done(r, "waiters", bizlock_waiters(r->b, &key, 1, see_waiter, NULL));
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
	for (int who = 0; who < 2 && r->open; who++) {
		acquire(r, who);
		acquire(r, who);
		release(r, who);
		release(r, who);
	}
	if (r->open)
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
	for (int who = 0; who < 2; who++)
		while (r.depth[who])
			release(&r, who);
	if (r.refused)
		die("allocation %d: memory is back, and the client says it is out", n);
	bizlock_close(r.b);
	eventually(db_number(w->admin, "SELECT COUNT(*) FROM biz_lock") == 0);
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
