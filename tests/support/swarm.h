/* Many jobs for a few processes, each with a database of its own: a job that hangs or kills its
 * process has failed, and the others go on. */
#ifndef TEST_SWARM_H
#define TEST_SWARM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SWARM_MAX = 32, SWARM_WHY = 1152 };

struct swarm {
	unsigned jobs;
	unsigned hangs_s; /* a job that takes longer has hung */

	/* In each process, before its first job and after its last one. schema: the name of its
	 * database, which is dropped if the process dies. */
	void (*begin)(char schema[32]);
	void (*end)(void);

	/* why: what was wrong; stays "" if nothing was. */
	void (*run)(unsigned job, char why[SWARM_WHY]);

	/* The command that repeats the job, and a note that it has failed. */
	const char *(*name)(unsigned job);
	void (*failed)(unsigned job);
};

/* Why a job has failed, and what the call that is to blame has answered. */
struct swarm_answer {
	int rc;
	int64_t took_ms;
	const char *errmsg;
};
void swarm_say_why(char *why, size_t size, struct swarm_answer answer, const char *fmt,
                   va_list args);

/* Memory, all zero, that all processes share. */
void *swarm_share(size_t size);

/* Runs fn in a process of its own, because one that forks should have no threads. */
void swarm_apart(void (*fn)(void *arg), void *arg);

/* Runs all jobs. How many have failed; each is printed at once, and all of them again in the
 * end. */
unsigned swarm_run(const struct swarm *swarm, unsigned processes);

/* BIZLOCK_FAULT_SEED, or a random number. */
unsigned swarm_seed(void);

/* BIZLOCK_FAULT_LONG=1: not just a sample. */
bool swarm_long(void);

#endif
