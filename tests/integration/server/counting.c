/* What an answer counts as affected rows is not what bizlock takes it for: CLIENT_FOUND_ROWS on the
 * way to the server, system versioning and triggers change it. Whether a lock is held must not
 * depend on that number.
 */
#include "cr_crew.h"
#include "cr_shared.h"

TestSuite(counting, .init = world_begin, .fini = world_end, .timeout = 240);

enum kind { FOUND_ROWS = 1, VERSIONED = 2, TRIGGERS = 4, ALL = 7 };

static struct proxy *proxy;

static void audit(const char *table)
{
	static const char *const when[] = {"BEFORE", "AFTER"};
	static const char *const what[] = {"INSERT", "UPDATE", "DELETE"};

	db_run(world.admin,
	       "CREATE TABLE audit_%s (id BIGINT AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20))",
	       table);
	for (int i = 0; i < 6; i++)
		db_run(world.admin,
		       "CREATE TRIGGER %s_%d %s %s ON %s FOR EACH ROW INSERT INTO audit_%s (what) "
		       "VALUES ('a'), ('b')",
		       table, i, when[i % 2], what[i / 2], table, table);
}

/* MySQL has no system versioning: what is left of `kind` is tried there. */
static void begin(enum kind kind)
{
	bool mysql = server_is_mysql(world.admin);

	not_here_unless(kind != VERSIONED || !mysql, "system versioning is MariaDB's");
	if (kind & VERSIONED && !mysql)
		db_run(world.admin, "ALTER TABLE biz_lock ADD SYSTEM VERSIONING");
	if (kind & TRIGGERS)
		audit("biz_lock");
	proxy = proxy_start(&world.at, "127.0.0.1");
	if (kind & FOUND_ROWS)
		proxy_find_rows(proxy);
}

static bizlock *counted(const char *const *options)
{
	return client_through(proxy, options);
}

/* For each kind a test of its own. */
#define EACH(name)                                                                                 \
	static void name(void);                                                                    \
	Test(counting, name##_where_rows_are_found)                                                \
	{                                                                                          \
		begin(FOUND_ROWS);                                                                 \
		name();                                                                            \
	}                                                                                          \
	Test(counting, name##_in_a_versioned_table)                                                \
	{                                                                                          \
		begin(VERSIONED);                                                                  \
		name();                                                                            \
	}                                                                                          \
	Test(counting, name##_in_a_table_with_triggers)                                            \
	{                                                                                          \
		begin(TRIGGERS);                                                                   \
		name();                                                                            \
	}                                                                                          \
	Test(counting, name##_with_all_of_that)                                                    \
	{                                                                                          \
		begin(ALL);                                                                        \
		name();                                                                            \
	}                                                                                          \
	static void name(void)

static void still_holds(bizlock *b, const bizlock_grant *grant)
{
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_eq(row_of(&world, KEY("k")).fence, grant->fence);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert(no_row(&world, KEY("k")));
}

EACH(a_holder_without_its_doorbell_is_not_robbed)
{
	bizlock *holder = counted(NULL), *other = counted(NULL), *polls;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	polls = counted(OPTIONS("queue", "off"));
	expect(OK, holder, acquire(holder, "k", .grant = &grant));
	kill_connections();
	expect(BUSY, other, acquire(other, "k"));
	expect(BUSY, polls, acquire(polls, "k"));
	expect(TIMEOUT, other, acquire(other, "k", .wait_ms = 300));
	still_holds(holder, &grant);
	works(other);
}

EACH(a_lease_that_is_over_is_taken_over)
{
	bizlock *holder = counted(NULL), *other = counted(NULL);
	bizlock_grant first = BIZLOCK_GRANT_INIT, second = BIZLOCK_GRANT_INIT;

	expect(OK, holder, acquire(holder, "k", .grant = &first));
	cr_assert_eq(first.flags, 0);
	db_run(world.admin, "UPDATE biz_lock SET timeout = '2000-01-01'");
	kill_connections();
	expect(OK, other, acquire(other, "k", .grant = &second));
	cr_assert_eq(second.flags, BIZLOCK_TOOK_OVER);
	cr_assert_gt(second.fence, first.fence);
	expect(LOST, holder, bizlock_release(holder, KEY("k"), NULL, NULL));
	still_holds(other, &second);
}

EACH(what_was_broken_is_lost)
{
	bizlock *holder = counted(NULL);

	for (int i = 0; i < 2; i++) {
		expect(OK, holder, acquire(holder, "k"));
		db_run(world.admin, "DELETE FROM biz_lock");
		if (i == 0)
			expect(LOST, holder, bizlock_renew(holder, KEY("k"), NULL, 60000));
		expect(LOST, holder, bizlock_release(holder, KEY("k"), NULL, NULL));
	}
}

EACH(sets_are_all_or_none)
{
	bizlock *holder = counted(NULL), *other = counted(NULL);
	bizlock_key keys[] = {KEY("j"), KEY("k"), KEY("l")};
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000);
	bizlock_grant grants[3] = {BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT, BIZLOCK_GRANT_INIT};
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, holder, acquire(holder, "k", .grant = &grant));
	kill_connections();
	expect(BUSY, other, bizlock_acquire_all(other, keys, 3, &opts, grants));
	still_holds(holder, &grant);
	expect(OK, other, bizlock_acquire_all(other, keys, 3, &opts, grants));
	cr_assert_eq(row_of(&world, KEY("k")).fence, grants[1].fence);
	expect(OK, other, bizlock_release_all(other, keys, 3, NULL));
}

EACH(batches_leave_what_is_held)
{
	bizlock_acquire_opts opts = OPTS(.lease_ms = 60000, .flags = BIZLOCK_NO_QUEUE);
	struct row before;
	struct crew c;

	crew_begin_by(&c, proxy, OPTIONS("max_connections", "1", "combine", "on"));
	expect(OK, c.stranger, bizlock_acquire(c.stranger, KEY(c.ids[1]), &opts, NULL));
	before = row_of(&world, KEY(c.ids[1]));
	c.wait_ms = 0;
	for (int round = 0; round < 2; round++) { /* at once, and in two packets */
		crew_all_together(&c);
		for (int i = 0; i < CREW; i++) {
			cr_assert_eq(c.calls[i].rc, i == 1 ? BIZLOCK_BUSY : BIZLOCK_OK, "%d: %s", i,
			             c.calls[i].errmsg);
			if (i != 1)
				cr_assert_eq(row_of(&world, KEY(c.ids[i])).fence,
				             c.calls[i].grant.fence);
		}
		crew_release_held(&c);
	}
	cr_assert_eq(row_of(&world, KEY(c.ids[1])).fence, before.fence);
	expect(OK, c.stranger, bizlock_release(c.stranger, KEY(c.ids[1]), NULL, NULL));
	crew_end(&c);
}

/* One after the other, by hand-offs among the threads of a client. */
EACH(hand_offs_go_on)
{
	bizlock *b = counted(NULL);
	struct call calls[4];
	uint64_t last = 0;

	expect(OK, b, acquire_as(b, "k", "first"));
	for (int i = 0; i < 4; i++) {
		static const char *const owners[] = {"a", "b", "c", "d"};

		call_start(&calls[i], b, "k", .wait_ms = CREW_WAIT_MS, .owner = owners[i]);
		call_blocks(&calls[i]);
	}
	expect(OK, b, bizlock_release(b, KEY("k"), "first", NULL));
	for (int i = 0; i < 4; i++) {
		cr_assert_eq(call_join(&calls[i]), BIZLOCK_OK, "%s", calls[i].errmsg);
		cr_assert_gt(calls[i].grant.fence, last);
		last = calls[i].grant.fence;
		cr_assert_eq(row_of(&world, KEY("k")).fence, last);
		expect(OK, b, bizlock_release(b, KEY("k"), calls[i].opts.owner, NULL));
	}
	cr_assert(no_row(&world, KEY("k")));
}

EACH(shared_locks_are_shared_and_no_more)
{
	bizlock *b = counted(NULL), *other = counted(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (uint32_t limit = 0; limit < 3; limit += 2) {
		expect(OK, b, try_as(b, "one", S, limit, &grant));
		expect(OK, other, try_as(other, "two", S, limit, &grant));
		kill_connections();
		if (limit)
			expect(BUSY, other, try_as(other, "three", S, limit, &grant));
		expect(BUSY, other, try_as(other, "alone", X, 0, &grant));
		expect(OK, b, release_as(b, "one"));
		expect(OK, other, release_as(other, "two"));
		expect(OK, other, try_as(other, "alone", X, 0, &grant));
		kill_connections();
		expect(BUSY, b, try_as(b, "one", S, limit, &grant));
		expect(BUSY, b, try_as(b, "two", X, 0, &grant));
		expect(OK, other, release_as(other, "alone"));
		cr_assert_eq(rows_where(LIVE), 0);
	}
}
