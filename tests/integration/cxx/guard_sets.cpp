/* bizlock::guard of several keys, and in transactions. */
#include "cr_cxx.hpp"

TestSuite(guard_sets, .init = cxx_begin, .fini = world_end, .timeout = 240);

static const bizlock_key pair_of_keys[] = {{"test", "a"}, {"test", "b"}};

Test(guard_sets, has_all_and_gives_all_back)
{
	bizlock::client b = new_client();

	{
		bizlock::guard g = b.acquire({{"test", "b"}, {"test", "a"}, {"test", "c"}});

		cr_assert_eq(g.size(), 3);
		cr_assert_str_eq(g.key(0).biz_id, "b");
		cr_assert_eq(g.grant(0).fence, row_of("b").fence);
		cr_assert_eq(g.grant(2).fence, row_of("c").fence);
		cr_assert_eq(g.fence(), g.grant(0).fence);
		g.renew(std::chrono::hours(2));
		cr_assert_gt(g.left().count(), 3600 * 1000);
	}
	cr_assert_eq(all_rows(&world), 0);
}

Test(guard_sets, has_none_where_one_is_taken)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "b"});

	cr_assert(!b.try_acquire({pair_of_keys, 2}));
	cr_assert(!row_of("a").there);
	theirs.release();
	cr_assert(b.try_acquire({pair_of_keys, 2}));
}

/* The weakest of them decides. */
Test(guard_sets, one_that_is_lost_is_a_loss)
{
	bizlock::client b = new_client();
	bizlock::guard g = b.acquire({pair_of_keys, 2});
	std::error_code ec;

	cr_assert(!g.lost());
	db_run(world.admin, "DELETE FROM biz_lock WHERE biz_id = 'b'");
	g.renew(std::chrono::seconds(0), ec);
	expect_code(LOST, ec);
	cr_assert(g.lost());
	expect_throw(LOST, "b", g.release());
	cr_assert(!g);
	cr_assert(!row_of("a").there);
}

Test(guard_sets, of_no_keys_or_bad_ones_is_refused)
{
	bizlock::client b = new_client();
	bizlock_key none = {nullptr, nullptr};
	const bizlock_key *nowhere = nullptr;

	expect_throw(INVALID, "", bizlock::guard got = b.acquire({pair_of_keys, 0}));
	expect_throw(INVALID, "", bizlock::guard got = b.acquire(none));
	expect_throw(INVALID, "", bizlock::guard got = b.acquire({nowhere, 2}));
	expect_throw(INVALID, "", bizlock::guard got = b.acquire({"test", ""}));
	expect_throw(INVALID, "", bizlock::guard got = b.acquire({{"test", "a"}, {"test", "a"}}));
}

/* ---- transactions ------------------------------------------------------------------- */

static MYSQL *begun()
{
	MYSQL *tx = db_open(&world.at, world.schema);

	db_run(tx, "CREATE TABLE IF NOT EXISTS ledger (id INT PRIMARY KEY) ENGINE=InnoDB");
	db_run(tx, "START TRANSACTION");
	db_run(tx, "INSERT INTO ledger VALUES (1)");
	return tx;
}

static long long written()
{
	return db_number(world.admin, "SELECT COUNT(*) FROM ledger");
}

Test(guard_sets, commits_as_the_holder_of_all)
{
	bizlock::client b = new_client();
	bizlock::guard g = b.acquire({pair_of_keys, 2});
	MYSQL *tx = begun();

	g.fence(tx);
	cr_assert_eq(written(), 0);
	g.commit(tx);
	cr_assert_eq(written(), 1);
	mysql_close(tx);
}

/* Whichever of them is lost. */
static void commits_not_without(const char *id)
{
	bizlock::client b = new_client();
	bizlock::guard g = b.acquire({pair_of_keys, 2});
	MYSQL *tx = begun();
	std::error_code ec;

	db_run(world.admin, "DELETE FROM biz_lock WHERE biz_id = '%s'", id);
	expect_throw(LOST, id, g.fence(tx));
	g.commit(tx, ec);
	expect_code(LOST, ec);
	mysql_rollback(tx);
	mysql_close(tx);
	cr_assert_eq(written(), 0);
}

Test(guard_sets, commits_not_without_the_first)
{
	commits_not_without("a");
}

Test(guard_sets, commits_not_without_the_last)
{
	commits_not_without("b");
}

Test(guard_sets, an_empty_guard_commits_nothing)
{
	bizlock::guard g;
	MYSQL *tx = begun();
	std::error_code ec;

	g.fence(tx, ec);
	expect_code(NOT_OWNER, ec);
	expect_throw(NOT_OWNER, "not held", g.commit(tx));
	mysql_rollback(tx);
	mysql_close(tx);
	cr_assert_eq(written(), 0);
}
