/* A hot standby. Start it on as many machines as you like: one of them leads, the others wait. When
 * the leader ends, dies, hangs or is cut off from the server, another one takes over: at once if it
 * ended, else when its lease is over (BIZLOCK_LEASE_MS, 30000).
 *
 *     standby [SERVICE]
 *
 * The leader writes to the table standby_log (tables.sql) ten times a second, in transactions that
 * only the leader can commit. SIGTERM: it gives the lead back, and ends. Where the server is comes
 * from the environment and the option files, as in hello.c. With several hosts
 * (BIZLOCK_HOST=db1,db2) the leader goes on at the next one that takes writes. */
#define _POSIX_C_SOURCE 200809L
#include <bizlock_tx.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bizlock *lock; /* here for the signal handler */
static atomic_bool asked_to_go;

static void on_signal(int number)
{
	(void)number;
	asked_to_go = true;
	bizlock_stop(lock, 1); /* ends the wait for the lead */
}

static void complain(const char *why)
{
	fprintf(stderr, "%s\n", why);
}

static bool leads(bizlock_key key)
{
	return !asked_to_go && bizlock_left_ms(lock, key, NULL) > 0;
}

/* One piece of work. False: db has to be closed, which rolls back what is open. */
static bool work(MYSQL *db, bizlock_key key, uint64_t fence)
{
	char insert[128];

	snprintf(insert, sizeof(insert),
	         "INSERT INTO standby_log (fence, pid, at) VALUES (%" PRIu64
	         ", %ld, UTC_TIMESTAMP(6))",
	         fence, (long)getpid());
	if (mysql_query(db, "START TRANSACTION") != 0 || mysql_query(db, insert) != 0) {
		complain(mysql_error(db));
		return false;
	}
	if (bizlock_commit(lock, key, NULL, db) != BIZLOCK_OK) {
		complain(bizlock_errmsg(lock));
		return false;
	}
	return true;
}

/* Until the lead is lost, or somebody asks us to go. Each turn has a connection of its own: to the
 * server that has the locks, also after a failover. */
static void lead(bizlock_key key, uint64_t fence)
{
	const struct timespec tick = {.tv_nsec = 100000000};

	while (leads(key)) {
		MYSQL *db = mysql_init(NULL);

		if (db != NULL && bizlock_connect(lock, db) == BIZLOCK_OK)
			while (leads(key) && work(db, key, fence))
				nanosleep(&tick, NULL);
		else
			complain(bizlock_errmsg(lock));
		if (db != NULL)
			mysql_close(db);
		nanosleep(&tick, NULL);
	}
}

int main(int argc, char **argv)
{
	bizlock_key key = {"standby", argc > 1 ? argv[1] : "service"};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	int rc;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (bizlock_new(&lock) != BIZLOCK_OK || bizlock_open(lock) != BIZLOCK_OK) {
		complain(bizlock_errmsg(lock));
		bizlock_close(lock);
		return 1;
	}
	signal(SIGTERM, on_signal);
	signal(SIGINT, on_signal);
	printf("waiting\n");
	while (!asked_to_go) {
		rc = bizlock_acquire(lock, key, NULL, &grant); /* NULL: waits for ever */
		if (rc == BIZLOCK_OK) {
			printf("leading, fence %" PRIu64 "%s\n", grant.fence,
			       grant.flags & BIZLOCK_TOOK_OVER ? ": look for half-done work" : "");
			lead(key, grant.fence);
			rc = bizlock_release(lock, key, NULL, NULL);
			printf("leading no more\n");
		}
		if (rc != BIZLOCK_OK && rc != BIZLOCK_CANCELLED) {
			complain(bizlock_errmsg(lock)); /* LOST, or no server */
			sleep(1);
		}
	}
	signal(SIGTERM, SIG_DFL); /* bizlock_stop() must not be called from here on */
	signal(SIGINT, SIG_DFL);
	bizlock_close(lock);
	return 0;
}
