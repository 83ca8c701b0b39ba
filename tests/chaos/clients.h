/* Twelve processes that take a few keys by turns and give them back, and write down what happens:
 * each call, each hold, what the library said of errors. What they write is shared memory, so that
 * a process that hangs or is killed takes nothing with it. */
#ifndef CHAOS_CLIENTS_H
#define CHAOS_CLIENTS_H

#include <stdbool.h>

#include "history.h"
#include "world.h"

#define CHAOS_PROCESSES 12
#define CHAOS_KEYS 4
#define CHAOS_LEASE_MS 5000
#define CHAOS_WAIT_MS 20000

struct chaos_clients;

struct chaos_error {
	int64_t at_us;
	uint16_t process;
	uint8_t what, rc;
	char text[320];
};

int64_t chaos_now_us(void);

/* Forks them. They do nothing before chaos_clients_go(). */
struct chaos_clients *chaos_clients_fork(unsigned seed);

/* Returns when all have a client and have begun. hosts: the option of that name of each third of
 * the processes; option_file has the password. One process more is the application: at the server
 * `app` it locks ranges of the tables, gaps and all, now and then, and changes nothing. Another
 * is a reaper, which has the hosts of the first third. with_callers: half of the processes take
 * locks by CALL. */
void chaos_clients_go(struct chaos_clients *c, const struct world *w, const char *const hosts[3],
                      const char *option_file, const struct server *app, bool with_callers);

/* Returns when all have ended, or `ms` later. What runs then is killed. False: one did not end
 * well. */
bool chaos_clients_end(struct chaos_clients *c, int64_t ms);

/* What they did; faults and the end are to be filled in. */
struct chaos_history chaos_clients_history(const struct chaos_clients *c);

/* The first of the errors they were told; NULL: there is no such number. */
const struct chaos_error *chaos_clients_error(const struct chaos_clients *c, unsigned number);

#endif
