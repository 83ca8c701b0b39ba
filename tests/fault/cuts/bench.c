/* The clients whose network fails, and those beside them. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cuts.h"
#include "patience.h"

static bizlock *client_to_suffer(const struct bench *bench, bool off, bool hasty)
{
	struct server at = proxy_address(bench->proxy);
	struct world detour = world_by_way_of(&bench->world, &at);
	char lease[16], io[16];

	snprintf(lease, sizeof(lease), "%d", LEASE_MS);
	snprintf(io, sizeof(io), "%d", hasty ? HASTY_IO_MS : 4 * PROMPT_MS);
	return client_new(&detour, OPTIONS("ssl_mode", "disabled", "queue", off ? "off" : "auto",
	                                   "io_timeout_ms", io, "connect_timeout_ms", io,
	                                   "lease_ms", lease));
}

static void open_client(bizlock *b)
{
	must_work(b, bizlock_open(b), "open");
}

/* Afterwards, every statement is prepared on the connection that will be used, so that the packets
 * are those of the call alone. */
static void warm_up(struct run *r)
{
	const bizlock_key key = KEY("warm");
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.owner = ME;
	opts.flags = r->scenario->mode & BIZLOCK_SHARED;
	opts.limit = r->scenario->limit;
	must_work(r->b, bizlock_acquire(r->b, key, &opts, NULL), "warm up");
	must_work(r->b, bizlock_acquire(r->b, key, &opts, NULL), "warm up");
	must_work(r->b, bizlock_renew(r->b, key, ME, 0), "warm up");
	must_work(r->b, bizlock_verify(r->b, key, ME), "warm up");
	must_work(r->b, bizlock_release(r->b, key, ME, NULL), "warm up");
	must_work(r->b, bizlock_release(r->b, key, ME, NULL), "warm up");
	opts.flags |= BIZLOCK_NO_QUEUE;
	must_work(r->b, bizlock_acquire(r->b, key, &opts, NULL), "warm up");
	must_work(r->b, bizlock_release(r->b, key, ME, NULL), "warm up");
	if (bizlock_break(r->b, key, 1) != BIZLOCK_LOST)
		die("warm up: %s", bizlock_errmsg(r->b));
}

static void learn_name(struct run *r, char me[192])
{
	must_work(r->b, take(r->b, r, ME, PROMPT_MS, NULL), "a first hold");
	snprintf(me, 192, "%s", row_now(r).owner);
	must_work(r->b, bizlock_release(r->b, KEY(r->id), ME, NULL), "a first hold");
}

bool is_prompt(enum what what)
{
	return what == CUT || what == CUT_AGAIN || what == DELAY || what == NOTHING;
}

/* Clients for runs that open or close are made for the run. All others are used again. */
void choose_client(struct run *r)
{
	struct bench *bench = r->bench;
	bool off = r->point->off, hasty = !is_prompt(r->point->what);

	if (r->scenario->kind == OPENS || r->scenario->kind == CLOSES) {
		r->b = client_to_suffer(bench, off, hasty);
		if (r->scenario->kind == CLOSES)
			open_client(r->b);
		r->me = "";
		return;
	}
	if (!bench->clients[off][hasty].b) {
		r->b = bench->clients[off][hasty].b = client_to_suffer(bench, off, hasty);
		open_client(r->b);
		learn_name(r, bench->clients[off][hasty].me);
	}
	r->b = bench->clients[off][hasty].b;
	r->me = bench->clients[off][hasty].me;
	if (!r->scenario->cold)
		warm_up(r);
}

void bench_open(struct bench *bench)
{
	struct server at = server_from_env();

	*bench = (struct bench){.serial = 0};
	world_make(&bench->world, &at);
	world_migrate(&bench->world);
	db_run(bench->world.admin, "CREATE TABLE commits (at DATETIME)");
	bench->proxy = proxy_start(&bench->world.at, "127.0.0.1");
	for (int off = 0; off < 2; off++) {
		const char *queue = off ? "off" : "auto";

		bench->holders[off] = client_open(&bench->world, OPTIONS("queue", queue));
		bench->strangers[off] = client_open(&bench->world, OPTIONS("queue", queue));
	}
}

void bench_await_commits(const struct bench *bench)
{
	int64_t end = now_ms() + PROMPT_MS, start;

	do {
		start = now_ms();
		db_run(bench->world.admin, "INSERT INTO commits VALUES (NOW())");
	} while (now_ms() - start > HASTY_IO_MS / 8 && start < end);
}

void bench_renew(struct bench *bench)
{
	for (int i = 0; i < 4; i++) {
		bizlock_close(bench->clients[i / 2][i % 2].b);
		bench->clients[i / 2][i % 2].b = NULL;
	}
	bench->serial++;
	db_run(bench->world.admin, "DELETE FROM biz_lock");
}

void bench_close(struct bench *bench)
{
	bench_renew(bench);
	for (int off = 0; off < 2; off++) {
		bizlock_close(bench->holders[off]);
		bizlock_close(bench->strangers[off]);
	}
	proxy_stop(bench->proxy);
	world_drop(&bench->world);
}
