/* Twenty threads, in any number of processes, do the jobs of a table, and end when all are done. A
 * job does something outside of the database, so it is done under a lock. What a process that died
 * has left half done is found by the next holder. Needs the table job (tables.sql). Where the
 * server is comes from the environment and the option files, as in hello.c. */
#define _POSIX_C_SOURCE 200809L
#include <bizlock_tx.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 20
static const struct timespec moment = {.tv_nsec = 100000000};

static bool fail(const char *why)
{
	fprintf(stderr, "%s\n", why);
	return false;
}

/* *ret: any job that is to be done; 0: there is none. */
static bool find_job(MYSQL *db, uint64_t *ret)
{
	static const char sql[] = "SELECT id FROM job WHERE state < 2 ORDER BY RAND() LIMIT 1";
	MYSQL_RES *rows = mysql_query(db, sql) == 0 ? mysql_store_result(db) : NULL;
	MYSQL_ROW row;

	if (rows == NULL)
		return fail(mysql_error(db));
	row = mysql_fetch_row(rows);
	*ret = row != NULL ? strtoull(row[0], NULL, 10) : 0;
	mysql_free_result(rows);
	return true;
}

/* In a transaction that only the holder can commit. *ret_saved: the job was not done yet. */
static bool save(bizlock *lock, MYSQL *db, bizlock_key key, int state, uint64_t fence,
                 bool *ret_saved)
{
	char sql[128];

	snprintf(sql, sizeof(sql),
	         "UPDATE job SET state = %d, fence = %" PRIu64 " WHERE id = %s AND state < 2",
	         state, fence, key.biz_id);
	if (mysql_query(db, "START TRANSACTION") != 0 || mysql_query(db, sql) != 0)
		return fail(mysql_error(db));
	*ret_saved = mysql_affected_rows(db) == 1;
	return bizlock_commit(lock, key, NULL, db) == BIZLOCK_OK || fail(bizlock_errmsg(lock));
}

/* A job that another worker has is left to it. */
static bool do_job(bizlock *lock, MYSQL *db, uint64_t job)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	char id[24];
	bizlock_key key = {"job", id};
	bool begun = false, good;
	int rc;

	snprintf(id, sizeof(id), "%" PRIu64, job);
	opts.wait_ms = 0;
	rc = bizlock_acquire(lock, key, &opts, &grant);
	if (rc != BIZLOCK_OK)
		return rc == BIZLOCK_BUSY ? nanosleep(&moment, NULL) == 0
		                          : fail(bizlock_errmsg(lock));
	good = save(lock, db, key, 1, grant.fence, &begun);
	if (good && begun) {
		if (grant.flags & BIZLOCK_TOOK_OVER) /* look outside how far it got */
			printf("job %s was left half done\n", id);
		nanosleep(&moment, NULL); /* the work; long work looks at bizlock_left_ms() */
		good = save(lock, db, key, 2, grant.fence, &begun);
	}
	rc = bizlock_release(lock, key, NULL, NULL);
	return good && (rc == BIZLOCK_OK || fail(bizlock_errmsg(lock)));
}

/* After an error it begins anew, with another connection: the server may have failed over. */
static void *work(void *arg)
{
	bizlock *lock = arg;
	MYSQL *db = NULL;
	uint64_t job = 1;

	while (job != 0) {
		if (db == NULL && (db = mysql_init(NULL)) != NULL &&
		    bizlock_connect(lock, db) != BIZLOCK_OK)
			fail(bizlock_errmsg(lock));
		else if (db != NULL && find_job(db, &job) && (job == 0 || do_job(lock, db, job)))
			continue;
		if (db != NULL)
			mysql_close(db); /* rolls back what is open */
		db = NULL;
		nanosleep(&moment, NULL);
	}
	mysql_close(db);
	mysql_thread_end();
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	bizlock *lock = NULL;
	int started = 0;

	if (bizlock_new(&lock) != BIZLOCK_OK || bizlock_open(lock) != BIZLOCK_OK)
		fail(bizlock_errmsg(lock));
	else
		while (started < THREADS &&
		       pthread_create(&threads[started], NULL, work, lock) == 0)
			started++;
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	bizlock_close(lock);
	return started == 0;
}
