#define _GNU_SOURCE 1
#include "cr_behind.h"

#include "cr_crew.h"
#include "cr_tx.h"

void locks_work_behind(const struct between *x)
{
	bizlock *b = client_behind(x, NULL), *direct = client(NULL);
	struct keyset s;

	works(b);
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, acquire(b, "k"));
	expect(BUSY, direct, acquire(direct, "k"));
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 60000));
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	works(direct);
	keyset_make(&s, 20, "s");
	expect(OK, b, keyset_acquire(b, &s));
	expect(OK, b, keyset_release(b, &s, NULL));
	bizlock_close(b);
}

/* The lease outlasts the test: only the doorbell can wake the waiter. */
void a_waiter_is_woken_behind(const struct between *x)
{
	bizlock *b = client_behind(x, NULL), *other = client_behind(x, NULL);
	struct call c;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	call_start(&c, other, "k", .wait_ms = -1, .owner = "task-2");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	expect(OK, other, call_join(&c));
	expect(OK, other, bizlock_release(other, KEY("k"), "task-2", NULL));
	bizlock_close(other);
	bizlock_close(b);
}

#define BATCH_PACKETS 1

void batches_work_behind(const struct between *x)
{
	struct server direct = world.at;
	struct crew c;
	unsigned before;

	world.at = x->at;
	crew_begin(&c, "on");
	crew_line_up(&c);
	before = proxy_packets(c.proxy);
	crew_go(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_sent(&c, before, BATCH_PACKETS);
	crew_releases(&c, true);
	crew_all_together(&c);
	crew_all_are(&c, BIZLOCK_OK);
	crew_end(&c);
	world.at = direct;
}

void commits_are_fenced_behind(const struct between *x)
{
	bizlock *b = client_behind(x, NULL);
	MYSQL *tx;

	db_run(world.admin, "CREATE TABLE ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	tx = db_connect(&x->at, world.schema, CLIENT_MULTI_STATEMENTS, 0);
	expect(OK, b, acquire(b, "k"));
	tx_begin(tx, 1);
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(ledger_has(1));
	tx_begin(tx, 2);
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY("k")));
	expect(LOST, b, bizlock_commit(b, KEY("k"), NULL, tx));
	cr_assert(!ledger_has(2));
	mysql_close(tx);
	bizlock_close(b);
}

#define LATE_MS 5000 /* when the request arrives: after two timeouts of a second */

void take_comes_late(const struct server *at, unsigned again)
{
	struct fault late = {
	        .what = FAULT_DELAY, .side = FAULT_REQUESTS, .delay_ms = LATE_MS, .again = again};
	struct proxy *p = proxy_start(at, "127.0.0.1");
	bizlock *b = client_through(p, OPTIONS("max_connections", "1", "io_timeout_ms", "1000",
	                                       "connect_timeout_ms", "1000"));

	for (int i = 0; i < 3; i++)
		works(b);
	proxy_arm(p, &late);
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS, .lease_ms = 600000));
	cr_assert_gt(proxy_fired(p), 0);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	eventually(!proxy_is_late(p));
	steadily(!row_of(&world, KEY("k")).there, 300);
	works(b);
	proxy_stop(p);
}

void late_requests_are_ended_behind(const struct between *x)
{
	take_comes_late(&x->at, 0);
}
