#include "faults.h"

#include <stdio.h>

#include "admin.h"
#include "base/rnd.h"
#include "clients.h"
#include "patience.h"

const char *chaos_fault_text(unsigned kind)
{
	static const char *const texts[] = {
#define TEXT(name, text) text,
	        CHAOS_FAULTS(TEXT)
#undef TEXT
	};

	return texts[kind];
}

/* ---- what comes ---------------------------------------------------------------- */

static unsigned below(uint64_t *random, unsigned n)
{
	return (unsigned)(bl_rnd_next(random) % n);
}

/* A group with several primaries does not protect a table from a change on one member, and rows
 * written on another. */
static bool changes_tables(unsigned kind)
{
	return kind == CHAOS_ALTER || kind == CHAOS_SWAP;
}

/* Nobody gets a lock meanwhile, whatever the library does. */
static bool stops_all(enum chaos_fault_kind kind)
{
	return kind == CHAOS_LOCK || kind == CHAOS_READ_LOCK || kind == CHAOS_BACKUP ||
	       kind == CHAOS_ALTER;
}

/* Those that this cluster can have. */
static unsigned kinds_of(const struct cluster *c, bool with_full, enum chaos_fault_kind *ret)
{
	unsigned n = 0;

	for (unsigned kind = 0; kind < CHAOS_FAULT_KINDS; kind++)
		if ((kind != CHAOS_PART || c->is_apart) &&
		    (kind != CHAOS_SWITCH || c->has_one_primary) &&
		    (kind != CHAOS_FULL || (c->is_apart && with_full)) &&
		    (!changes_tables(kind) || !c->is_group || c->has_one_primary))
			ret[n++] = kind;
	return n;
}

#define WAY_MAX_MS (CHAOS_WAIT_MS / 2)

/* Some faults last longer than any cluster takes to go on without the node; most do not. */
struct chaos_plan chaos_draw(uint64_t seed, unsigned number, const struct cluster *c,
                             bool with_full)
{
	enum chaos_fault_kind kinds[CHAOS_FAULT_KINDS];
	unsigned n = kinds_of(c, with_full, kinds);
	uint64_t random = seed * 1000003 + number;
	struct chaos_plan plan = {.kind = kinds[below(&random, n)],
	                          .node = (int)below(&random, CLUSTER_NODES),
	                          .for_ms = 500 + below(&random, below(&random, 4) ? 8000 : 25000),
	                          .then_ms = 500 + below(&random, 3000),
	                          .replies = below(&random, 2)};

	if (plan.kind != CHAOS_SWITCH && below(&random, 2))
		plan.node = -1;
	/* However well the group is, clients that do not reach its only primary get nothing. */
	if (((c->has_one_primary && (plan.kind == CHAOS_CUT || plan.kind == CHAOS_SILENCE)) ||
	     stops_all(plan.kind)) &&
	    plan.for_ms > WAY_MAX_MS)
		plan.for_ms = WAY_MAX_MS;
	return plan;
}

/* ---- what is done ---------------------------------------------------------------- */

static bool kill_it(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                    int64_t *ret_us)
{
	bool done = cluster_do(&site->cluster, "kill", node);

	*ret_us = chaos_now_us();
	pause_ms(plan->for_ms);
	return done;
}

static bool freeze(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                   int64_t *ret_us)
{
	bool done = cluster_do(&site->cluster, "freeze", node);

	*ret_us = chaos_now_us();
	pause_ms(plan->for_ms);
	return cluster_do(&site->cluster, "thaw", node) && done;
}

static bool break_line(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                       int64_t *ret_us)
{
	struct fault fault = {.what = plan->kind == CHAOS_CUT ? FAULT_CUT : FAULT_SWALLOW,
	                      .side = plan->replies ? FAULT_REPLIES : FAULT_REQUESTS,
	                      .for_ever = true};

	proxy_arm(site->proxies[node], &fault);
	*ret_us = chaos_now_us();
	pause_ms(plan->for_ms);
	proxy_arm(site->proxies[node], NULL);
	proxy_cut(site->proxies[node]);
	return true;
}

static bool slow_down(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                      int64_t *ret_us)
{
	int64_t end = now_ms() + plan->for_ms;
	bool done = true;

	*ret_us = chaos_now_us();
	while (done && pause_before(end)) {
		done = cluster_do(&site->cluster, "freeze", node);
		pause_ms(200);
		done = cluster_do(&site->cluster, "thaw", node) && done;
		pause_ms(50);
	}
	return done;
}

static bool part(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                 int64_t *ret_us)
{
	bool done = cluster_do(&site->cluster, "cut", node);

	*ret_us = chaos_now_us();
	pause_ms(plan->for_ms);
	return cluster_do(&site->cluster, "join", node) && done;
}

/* A server that found no room for a log looks again a minute later. */
#define FULL_MS 61000

static bool fill_disk(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                      int64_t *ret_us)
{
	bool done = cluster_do(&site->cluster, "fill", node);

	*ret_us = chaos_now_us();
	pause_ms(plan->for_ms);
	done = cluster_do(&site->cluster, "empty", node) && done;
	pause_ms(FULL_MS);
	return done;
}

static bool switch_primary(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                           int64_t *ret_us)
{
	(void)plan;
	*ret_us = chaos_now_us();
	return cluster_do(&site->cluster, "primary", node);
}

static chaos_way *const ways[] = {
        [CHAOS_KILL] = kill_it,
        [CHAOS_FREEZE] = freeze,
        [CHAOS_CUT] = break_line,
        [CHAOS_SILENCE] = break_line,
        [CHAOS_SLOW] = slow_down,
        [CHAOS_PART] = part,
        [CHAOS_SWITCH] = switch_primary,
        [CHAOS_FULL] = fill_disk,
        [CHAOS_LOCK] = chaos_lock_tables,
        [CHAOS_READ_LOCK] = chaos_block_commits,
        [CHAOS_VIEW] = chaos_keep_old_view,
        [CHAOS_BACKUP] = chaos_back_up,
        [CHAOS_ALTER] = chaos_alter_behind_tx,
        [CHAOS_SWAP] = chaos_swap_copy,
        [CHAOS_NO_ROOM] = chaos_fill_server,
        [CHAOS_KILLS] = chaos_kill_sleepers,
        [CHAOS_PASSWORD] = chaos_change_password,
};

static unsigned node_of(const struct chaos_site *site, const struct chaos_plan *plan)
{
	int node = plan->node;

	if (node < 0 && site->cluster.has_one_primary)
		node = cluster_primary(&site->cluster);
	return node < 0 ? 0 : (unsigned)node;
}

bool chaos_inject(struct chaos_site *site, const struct chaos_plan *plan, struct chaos_fault *ret)
{
	unsigned node = node_of(site, plan);
	bool good;

	*ret = (struct chaos_fault){
	        .kind = (uint8_t)plan->kind, .node = (uint8_t)node, .begun_us = chaos_now_us()};
	good = ways[plan->kind](site, plan, node, &ret->struck_us) &&
	       cluster_do(&site->cluster, "rejoin", node) &&
	       cluster_do(&site->cluster, "wait", node);
	ret->mended_us = chaos_now_us();
	ret->excused_ms = plan->kind == CHAOS_FULL ? 5000 : stops_all(plan->kind) ? 1000 : 0;
	pause_ms(plan->then_ms);
	return good;
}
