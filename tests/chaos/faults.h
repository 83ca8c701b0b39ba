/* What is done to a cluster, one fault after the other, so that a majority of its nodes is always
 * well. All that is random comes from the seed: the same seed gives the same faults in the same
 * order, with the same lengths. What they meet is another matter. */
#ifndef CHAOS_FAULTS_H
#define CHAOS_FAULTS_H

#include <stdbool.h>

#include "cluster.h"
#include "history.h"
#include "proxy.h"

/* X(name, what is done) */
#define CHAOS_FAULTS(X)                                                                            \
	X(KILL, "kill: SIGKILL, and started again")                                                \
	X(FREEZE, "freeze: SIGSTOP")                                                               \
	X(CUT, "cut: clients are refused")                                                         \
	X(SILENCE, "silence: packets of clients vanish")                                           \
	X(SLOW, "slow disk: SIGSTOP for 200 of 250 ms")                                            \
	X(PART, "part: the other nodes do not hear of it")                                         \
	X(SWITCH, "switch of the primary")                                                         \
	X(FULL, "full disk")                                                                       \
	X(LOCK, "LOCK TABLES")                                                                     \
	X(READ_LOCK, "FLUSH TABLES WITH READ LOCK")                                                \
	X(VIEW, "an old view, as a dump has it")                                                   \
	X(BACKUP, "a backup's lock")                                                               \
	X(ALTER, "ALTER TABLE behind a transaction")                                               \
	X(SWAP, "a copy in the table's place")                                                     \
	X(NO_ROOM, "no new connections")                                                           \
	X(KILLS, "connections that sleep are killed")                                              \
	X(PASSWORD, "another password")

enum chaos_fault_kind {
#define CHAOS_ENUM_(name, text) CHAOS_##name,
	CHAOS_FAULTS(CHAOS_ENUM_)
#undef CHAOS_ENUM_
	        CHAOS_FAULT_KINDS
};

/* "kill: SIGKILL, and started again" */
const char *chaos_fault_text(unsigned kind);

/* Where it happens: each node, and the way by which clients reach it. */
struct chaos_site {
	struct cluster cluster;
	struct proxy *proxies[CLUSTER_NODES];
	char schema[64];
	char option_file[300]; /* with the clients' password */
};

struct chaos_plan {
	enum chaos_fault_kind kind;
	int node; /* 0 to 2; -1: the primary, where there is one, and otherwise 0 */
	unsigned for_ms, then_ms;
	bool replies; /* those vanish, and not the requests; a lock for reads, and not for writes */
};

/* Fault number `number` of that seed. with_full: full disks are among them, each of which takes
 * more than a minute. */
struct chaos_plan chaos_draw(uint64_t seed, unsigned number, const struct cluster *c,
                             bool with_full);

/* Returns when the fault is over; *ret_us: since when it does harm. */
typedef bool chaos_way(struct chaos_site *site, const struct chaos_plan *plan, unsigned node,
                       int64_t *ret_us);

/* Does it, mends it, and waits until all nodes are members again, and then then_ms. False: they did
 * not become members. */
bool chaos_inject(struct chaos_site *site, const struct chaos_plan *plan, struct chaos_fault *ret);

#endif
