/* A run: a client, a lie, and what comes of it. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "hostile.h"
#include "patience.h"

/* ---- clients ----------------------------------------------------------------- */

static bizlock *client_to_deceive(const struct bench *bench, const struct scenario *s)
{
	struct server at = relay_address(bench->relay);
	struct world detour = world_by_way_of(&bench->world, &at);
	char io[16];

	snprintf(io, sizeof(io), "%d", IO_MS);
	return client_new(&detour,
	                  OPTIONS("queue", s->client == QUEUE_OFF ? "off" : "auto",
	                          "max_connections", s->client == FEW_CONNECTIONS ? "4" : "16",
	                          "combine", "on", "io_timeout_ms", io, "connect_timeout_ms", io));
}

void bench_open(struct bench *bench)
{
	struct server at = server_from_env();

	world_make(&bench->world, &at);
	world_migrate(&bench->world);
	db_run(bench->world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	bench->relay = relay_start(&bench->world.at);
	bench->stranger = client_open(&bench->world, NULL);
	bench->locker = db_open(&at, bench->world.schema);
}

void bench_close(struct bench *bench)
{
	bizlock_close(bench->stranger);
	mysql_close(bench->locker);
	relay_stop(bench->relay);
	world_drop(&bench->world);
}

/* ---- a run ------------------------------------------------------------------- */

/* How long a packet may be on the caller's own connection. */
static bool is_callers_affair(const struct run *r, const struct plan *plan)
{
	return r->tx && plan->lie && plan->lie->number == ENDLESS_PACKET;
}

static void suffer(struct run *r, const struct plan *plan)
{
	struct relay *relay = r->bench->relay;
	int64_t start;

	relay_arm(relay, plan);
	start = now_ms();
	r->rc = r->scenario->act(r);
	r->took_ms = now_ms() - start;
	if (r->rc != BIZLOCK_OK && !r->errmsg[0])
		snprintf(r->errmsg, sizeof(r->errmsg), "%s", bizlock_errmsg(r->b));
	r->seen = relay_seen(relay);
	if (r->seen.swallowed && !is_callers_affair(r, plan))
		wrong(r, "it took whatever it was sent");
	relay_arm(relay, NULL);
}

static void judge(struct run *r, const struct plan *plan)
{
	bool believed = plan->lie && r->seen.told & ~plan->lie->noticeable;

	if (r->why[0])
		return;
	if (r->took_ms > LIMIT_MS && !is_callers_affair(r, plan))
		wrong(r, "it took longer than %d ms", LIMIT_MS);
	else if (!plan->lie && r->rc != r->scenario->rc)
		wrong(r, "an honest server, and no success");
	else if (r->rc == BIZLOCK_OK && !believed)
		r->scenario->truth(r);
}

/* Whatever is said still. */
static void close_in_time(struct run *r)
{
	int64_t start = now_ms();

	bizlock_close(r->b);
	if (now_ms() - start > CLOSE_LIMIT_MS && !r->why[0])
		wrong(r, "closing took longer than %d ms", CLOSE_LIMIT_MS);
}

static void end_run(struct run *r)
{
	struct bench *bench = r->bench;

	if (r->tx)
		mysql_close(r->tx);
	close_in_time(r);
	relay_refuse_prepare(bench->relay, false);
	if (bizlock_release(bench->stranger, KEY(r->id), ME, NULL) == BIZLOCK_CONN)
		die("the stranger: %s", bizlock_errmsg(bench->stranger));
	db_run(bench->world.admin,
	       "DELETE FROM biz_lock; DELETE FROM biz_row_lock; DELETE FROM biz_run; "
	       "DELETE FROM ledger");
}

void run_plan(struct bench *bench, const struct scenario *s, const struct plan *plan,
              struct run *ret)
{
	*ret = (struct run){.bench = bench,
	                    .scenario = s,
	                    .lie = plan->lie,
	                    .grant = BIZLOCK_GRANT_INIT,
	                    .serial = bench->serial++};
	snprintf(ret->id, sizeof(ret->id), "k%u", ret->serial);
	relay_refuse_prepare(bench->relay, s->client == UNPREPARED);
	ret->b = client_to_deceive(bench, s);
	if (s->client != CLOSED)
		eventually(bizlock_open(ret->b) == BIZLOCK_OK);
	s->prepare(ret);
	suffer(ret, plan);
	judge(ret, plan);
	end_run(ret);
}
