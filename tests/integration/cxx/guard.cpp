/* bizlock::guard: what is acquired is given back, once, whatever way leads out of its scope. */
#include <stdexcept>
#include <thread>
#include <vector>

#include "cr_cxx.hpp"

TestSuite(guard, .init = cxx_begin, .fini = world_end, .timeout = 240);

using guard_type = bizlock::guard;

static_assert(!std::is_copy_constructible<guard_type>::value, "two would release one level");
static_assert(!std::is_copy_assignable<guard_type>::value, "two would release one level");
static_assert(std::is_nothrow_move_constructible<guard_type>::value, "a vector would copy");
static_assert(std::is_nothrow_move_assignable<guard_type>::value, "a vector would copy");
static_assert(std::is_nothrow_destructible<guard_type>::value, "it ends on exceptions, too");
static_assert(sizeof(guard_type) == sizeof(void *), "a guard is a pointer");

Test(guard, releases_at_the_end_of_its_scope)
{
	bizlock::client b = new_client();

	{
		bizlock::guard g = b.acquire({"test", "k"});

		cr_assert(g);
		cr_assert(row_of("k").there);
		cr_assert_eq(g.fence(), row_of("k").fence);
		cr_assert_eq(g.grant().depth, 1);
		cr_assert_gt(g.left().count(), 0);
		cr_assert(!g.lost());
	}
	cr_assert(no_row("k"));
}

Test(guard, releases_when_an_exception_passes)
{
	bizlock::client b = new_client();

	try {
		bizlock::guard g = b.acquire({"test", "k"});

		cr_assert(row_of("k").there);
		throw std::runtime_error("out");
	} catch (const std::runtime_error &) {
	}
	cr_assert(no_row("k"));
}

Test(guard, is_one_level)
{
	bizlock::client b = new_client();
	bizlock::guard outer = b.acquire({"test", "k"});

	{
		bizlock::guard inner = b.acquire({"test", "k"});

		cr_assert_eq(inner.grant().depth, 2);
		cr_assert_eq(inner.fence(), outer.fence());
		cr_assert_eq(row_of("k").depth, 2);
	}
	cr_assert_eq(row_of("k").depth, 1);
}

Test(guard, release_leaves_it_empty)
{
	bizlock::client b = new_client();
	bizlock::guard outer = b.acquire({"test", "k"}), g = b.acquire({"test", "k"});

	g.release();
	cr_assert(!g);
	cr_assert_eq(g.size(), 0);
	cr_assert_eq(g.left().count(), 0);
	cr_assert(!g.lost());
	expect_throw(NOT_OWNER, "not held", g.release());
	expect_throw(NOT_OWNER, "not held", g.renew());
	cr_assert_eq(row_of("k").depth, 1);
}

/* ---- moves ------------------------------------------------------------------------ */

static bizlock::guard take(bizlock::client &b, const char *id)
{
	bizlock::guard g = b.acquire({"test", id});

	return g;
}

/* The outer level shows a release too many: it would be gone, or its row one level less. */
Test(guard, moved_from_releases_nothing)
{
	bizlock::client b = new_client();
	bizlock::guard outer = take(b, "k"), to;

	{
		bizlock::guard from = take(b, "k");

		to = std::move(from);
		cr_assert(!from);
	}
	cr_assert(to);
	cr_assert_eq(row_of("k").depth, 2);
	{
		bizlock::guard third(std::move(to));

		cr_assert(!to);
		cr_assert_eq(row_of("k").depth, 2);
	}
	cr_assert_eq(row_of("k").depth, 1);
}

Test(guard, assignment_releases_what_it_had)
{
	bizlock::client b = new_client();
	bizlock::guard g = take(b, "one");

	g = take(b, "two");
	cr_assert(no_row("one"));
	cr_assert(row_of("two").there);
	cr_assert_str_eq(g.key().biz_id, "two");
	g = bizlock::guard();
	cr_assert(no_row("two"));
}

Test(guard, moved_to_itself_holds_as_before)
{
	bizlock::client b = new_client();
	bizlock::guard g = take(b, "k");
	bizlock::guard &same = g;

	g = std::move(same);
	cr_assert(g);
	cr_assert(row_of("k").there);
	g.release();
	cr_assert(no_row("k"));
}

Test(guard, many_in_a_vector)
{
	bizlock::client b = new_client();
	std::vector<bizlock::guard> all;

	for (int i = 0; i < 20; i++)
		all.push_back(take(b, std::to_string(i).c_str()));
	cr_assert_eq(locks_there(&world), 20);
	all.erase(all.begin() + 3);
	cr_assert(no_row("3"));
	all.clear();
	cr_assert_eq(all_rows(&world), 0);
}

Test(guard, outlives_the_texts_it_was_made_from)
{
	bizlock::client b = new_client();
	std::string id = "k", owner = "task";
	bizlock::guard g = b.acquire({"test", id.c_str()}, bizlock::options(owner.c_str()));

	id = "x";
	owner = "them";
	cr_assert_str_eq(g.key().biz_id, "k");
	cr_assert_str_eq(g.owner(), "task");
	g.release();
	cr_assert(no_row("k"));
}

/* ---- the client moves -------------------------------------------------------------- */

Test(guard, does_not_mind_where_its_client_is)
{
	bizlock::client first = new_client();
	bizlock::guard g = take(first, "k");
	bizlock::client second(std::move(first)), third, &same = third;

	third = std::move(second);
	cr_assert_null(second.get());
	third = std::move(same);
	g.release();
	cr_assert(no_row("k"));
	expect_throw(INVALID, "", first.open());
}

/* ---- threads ----------------------------------------------------------------------- */

Test(guard, with_a_named_owner_is_released_by_any_thread)
{
	bizlock::client b = new_client();
	bizlock::guard g = b.acquire({"test", "k"}, bizlock::options("task"));

	std::thread([&] { bizlock::guard(std::move(g)).release(); }).join();
	cr_assert(no_row("k"));
}

Test(guard, of_a_thread_is_not_released_by_another)
{
	bizlock::client b = new_client();
	bizlock::guard g = take(b, "k");
	std::error_code ec;

	std::thread([&] { bizlock::guard(std::move(g)).release(ec); }).join();
	expect_code(NOT_OWNER, ec);
	cr_assert(row_of("k").there);
}

/* ---- losses ------------------------------------------------------------------------ */

Test(guard, tells_a_loss)
{
	bizlock::client b = new_client();
	bizlock::guard g = take(b, "k");

	lose_all();
	expect_throw(LOST, "k", g.renew());
	cr_assert(g);
	cr_assert(g.lost());
	cr_assert_leq(g.left().count(), 0);
	expect_throw(LOST, "k", g.release());
	cr_assert(!g);
}

Test(guard, tells_that_a_lease_is_over)
{
	bizlock::client b = new_client();
	bizlock::options how;

	how.flags = BIZLOCK_NO_RENEW;
	bizlock::guard g = b.acquire({"test", "k"}, how.lease(std::chrono::milliseconds(200)));

	cr_assert_leq(g.left().count(), 200);
	eventually(g.lost());
}

Test(guard, the_end_of_it_reports_and_does_not_throw)
{
	bizlock::client b = new_client();
	std::error_code ec = BIZLOCK_MISUSE;

	{
		bizlock::guard g = take(b, "k");

		g.report_to(&ec);
	}
	expect_code(OK, ec);
	{
		bizlock::guard g = take(b, "k"), moved;

		g.report_to(&ec);
		moved = std::move(g);
		lose_all();
	}
	expect_code(LOST, ec);
	cr_assert(std::string(b.errmsg()).find("k") != std::string::npos);
}

Test(guard, renews)
{
	bizlock::client b = new_client();
	bizlock::guard g =
	        b.acquire({"test", "k"}, bizlock::options().lease(std::chrono::seconds(9)));
	std::error_code ec;

	g.renew(std::chrono::hours(2));
	cr_assert_gt(g.left().count(), 3600 * 1000);
	g.renew(std::chrono::milliseconds(99), ec);
	expect_code(INVALID, ec);
	g.renew(std::chrono::minutes(-1), ec);
	expect_code(INVALID, ec);
	g.renew(std::chrono::seconds(0), ec);
	expect_code(OK, ec);
	g.renew();
	cr_assert_gt(g.left().count(), 3600 * 1000);
}

Test(guard, shares_what_it_held_alone)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard g = b.acquire({"test", "k"});
	bizlock::guard empty;
	bizlock::options shared;
	std::error_code ec;

	shared.flags = BIZLOCK_SHARED;
	g.downgrade();
	cr_assert(other.try_acquire({"test", "k"}, shared));
	cr_assert_not(other.try_acquire({"test", "k"}));
	empty.downgrade(ec);
	cr_assert_eq(ec.value(), BIZLOCK_NOT_OWNER);
}
