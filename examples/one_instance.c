/* A server of which one instance works, and the others wait: what GET_LOCK('shop-worker', -1) was
 * for. It leads until SIGTERM or until the lock is lost, and says so.
 *
 * Where the server is comes from the environment and from the usual option files, as for hello.c.
 * `one_instance SECONDS` works for so long, and ends. */
#define _POSIX_C_SOURCE 200809L
#include <bizlock.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const bizlock_key key = {"service", "shop-worker"};
static bizlock *lock;
static volatile sig_atomic_t stopped;

static void on_term(int signal)
{
	(void)signal;
	stopped = 1;
	bizlock_stop(lock, 1); /* ends the wait for the lock */
}

static int must(int rc)
{
	if (rc == BIZLOCK_OK)
		return rc;
	fprintf(stderr, "%s: %s\n", bizlock_err_name(rc), bizlock_errmsg(lock));
	exit(rc == BIZLOCK_CANCELLED ? 0 : 1);
}

/* One step of the work, which must be over well within the lease. */
static void work(void)
{
	struct timespec moment = {0, 100000000};

	nanosleep(&moment, NULL);
}

int main(int argc, char **argv)
{
	int64_t steps = argc > 1 ? 10 * strtoll(argv[1], NULL, 10) : INT64_MAX;
	struct sigaction term = {.sa_handler = on_term};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	must(bizlock_new(&lock));
	must(bizlock_open(lock));
	sigaction(SIGTERM, &term, NULL);
	opts.wait_ms = -1;
	opts.note = "one_instance";
	must(bizlock_acquire(lock, key, &opts, &grant));
	printf("leads, fence %" PRIu64 "%s\n", grant.fence,
	       grant.flags & BIZLOCK_TOOK_OVER ? ", the leader before has crashed" : "");
	fflush(stdout);
	while (!stopped && steps-- > 0 && bizlock_left_ms(lock, key, NULL) > 1000)
		work();
	signal(SIGTERM, SIG_IGN);
	must(bizlock_release(lock, key, NULL, NULL)); /* LOST: somebody else may lead by now */
	bizlock_close(lock);
	return 0;
}
