/* Connections that lie idle: a server ends them, or a firewall forgets them and tells nobody. */
#define _GNU_SOURCE 1
#include "cr_numbers.h"
#include "cr_test.h"

/* ---- a firewall that forgets ------------------------------------------------------------ */

TestSuite(forgotten, .init = world_begin, .fini = world_end, .timeout = 240);

/* A lease is less than what a read may take, and a third of it, which is what is left when a
 * connection that does not answer is given up, is much on a busy machine. */
#define LEASE_MS 12000
#define IO_TIMEOUT_MS "16000"

static struct losses losses;

static void is_renewed(bizlock *b, int times)
{
	while (times-- > 0) {
		long long end = row_of(&world, KEY("k")).timeout_us;

		eventually(losses.count > 0 || row_of(&world, KEY("k")).timeout_us > end);
		cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 0);
		cr_assert_eq(losses.count, 0);
	}
}

/* "k" is held through p, and has been renewed, so that the renewer's connection is there, too. */
static bizlock *renewed_client(struct proxy **ret)
{
	bizlock *b;

	*ret = proxy_start(&world.at, "127.0.0.1");
	b = client_through(*ret, OPTIONS("io_timeout_ms", IO_TIMEOUT_MS));
	losses_watch(&losses, b);
	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	is_renewed(b, 1);
	return b;
}

static void end(bizlock *b, struct proxy *p)
{
	bizlock_on_lost(b, NULL, NULL);
	proxy_cut(p);
	proxy_stop(p);
}

Test(forgotten, connections_cost_no_lease)
{
	struct proxy *p;
	bizlock *b = renewed_client(&p);

	for (int i = 0; i < 2; i++) {
		proxy_forget(p);
		is_renewed(b, 1);
	}
	end(b, p);
}

/* Leases are renewed while the thread that cleans up waits for an answer. */
Test(forgotten, connections_of_a_release_cost_no_lease)
{
	struct proxy *p;
	bizlock *b = renewed_client(&p);

	expect(OK, b, acquire_renewed(b, "lost", .lease_ms = LEASE_MS));
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY("lost")));
	eventually(losses.count == 1);
	losses.count = 0;
	proxy_forget(p);
	expect(LOST, b, bizlock_release(b, KEY("lost"), NULL, NULL));
	is_renewed(b, 3);
	end(b, p);
}

/* A call on the hold that is renewed waits for an answer for longer than the lease. */
Test(forgotten, connections_of_a_reentry_cost_no_lease)
{
	struct proxy *p;
	bizlock *b = renewed_client(&p);
	struct call call;

	expect(OK, b, acquire_renewed(b, "named", .owner = "task-1", .lease_ms = LEASE_MS));
	proxy_forget(p);
	call_start(&call, b, "named", .wait_ms = -1, .owner = "task-1");
	is_renewed(b, 2);
	cr_assert_gt(bizlock_left_ms(b, KEY("named"), "task-1"), 0);
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(call.grant.depth, 2);
	end(b, p);
}

static atomic_bool told, may_return;

static void takes_its_time(void *arg, bizlock_key key, uint64_t fence)
{
	(void)arg;
	(void)key;
	(void)fence;
	told = true;
	eventually(may_return);
}

/* The function that is told of one loss takes long: that must not cause further losses. */
Test(forgotten, connections_cost_no_lease_while_a_loss_is_told)
{
	struct proxy *p;
	bizlock *b = renewed_client(&p);

	expect(OK, b, acquire_renewed(b, "lost", .lease_ms = LEASE_MS));
	expect(OK, b, bizlock_on_lost(b, takes_its_time, NULL));
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY("lost")));
	eventually(told);
	proxy_forget(p);
	is_renewed(b, 1);
	may_return = true;
	end(b, p);
}

/* ---- wait_timeout ------------------------------------------------------------------------- */

static struct own_server server;

static void end_own_world(void)
{
	if (world.admin)
		world_end();
	own_server_end(&server);
}

TestSuite(idle, .fini = end_own_world, .timeout = 480);

#define IDLE_S 4

/* A client of a server that ends connections which are idle for this time. */
static bizlock *client_of_an_impatient_server(void)
{
	bizlock *b;

	skip_unless(own_server_possible(), "no BIZLOCK_SERVER_SH");
	own_server_start(&server, "");
	world_make(&world, &server.at);
	world_migrate(&world);
	db_run(world.admin, "SET GLOBAL wait_timeout = %d", IDLE_S);
	b = client(NULL);
	return b;
}

static long long bell_of(const char *id)
{
	return db_number(world.admin, "SELECT bell FROM biz_lock WHERE %s", row_where(KEY(id)));
}

static bool is_connected(long long id)
{
	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM information_schema.processlist WHERE id = %lld",
	                 id) == 1;
}

Test(idle, connections_with_doorbells_stay)
{
	bizlock *b = client_of_an_impatient_server(), *waiter = client(NULL);
	struct call call;
	long long bell;

	expect(OK, b, acquire_renewed(b, "k", .lease_ms = LEASE_MS));
	expect(OK, b, acquire_renewed(b, "long", .lease_ms = 600000));
	bell = bell_of("k");
	cr_assert_gt(bell, 0);
	steadily(is_connected(bell), 3 * IDLE_S * 1000);
	call_start(&call, waiter, "k", .wait_ms = -1, .owner = "task-1");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	cr_assert_eq(numbers_of(b).reconnects, 0);
}

/* Before the server ends the connection, which it may do in the middle of a request. */
Test(idle, connections_without_doorbells_are_replaced)
{
	bizlock *b = client_of_an_impatient_server();
	long long before;

	expect(OK, b, acquire_as(b, "k", "task-1"));
	before = bell_of("k");
	expect(OK, b, bizlock_release(b, KEY("k"), "task-1", NULL));
	eventually(db_number(world.admin,
	                     "SELECT IFNULL(MAX(time), 99) FROM information_schema.processlist"
	                     " WHERE id = %lld",
	                     before) > IDLE_S / 2);
	expect(OK, b, acquire_as(b, "k", "task-1"));
	cr_assert_neq(bell_of("k"), before);
}
