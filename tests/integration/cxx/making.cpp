/* How clients and keys of bizlock.hpp are made: open unless asked otherwise, and from strings. */
#include <atomic>
#include <type_traits>

#include "cr_cxx.hpp"

TestSuite(making, .init = cxx_begin, .fini = world_end, .timeout = 240);

static_assert(!std::is_convertible<bizlock::defer_open, bizlock::client>::value,
              "a client that is not open is asked for by name");

/* ---- clients ------------------------------------------------------------------------------ */

Test(making, a_client_is_open)
{
	bizlock::client b, braces{}, with{{"lease_ms", "5000"}};
	std::error_code ec;
	bizlock::client told(ec);

	cr_assert_not(ec);
	cr_assert(b.acquire({"test", "1"}));
	cr_assert(braces.acquire({"test", "2"}));
	cr_assert_eq(with.acquire({"test", "3"}).grant().lease_ms, 5000);
	cr_assert(told.acquire({"test", "4"}));
}

Test(making, a_client_that_cannot_open_says_so)
{
	std::error_code ec;

	setenv("BIZLOCK_LEASE_MS", "never", 1);
	expect_throw(INVALID, "lease_ms", bizlock::client());

	bizlock::client told(ec);

	expect_code(INVALID, ec);
	cr_assert(std::string(told.errmsg()).find("lease_ms") != std::string::npos);
}

Test(making, a_client_that_opens_later_is_asked_for)
{
	bizlock::client b{bizlock::defer_open()};
	bizlock::guard g;

	expect_throw(MISUSE, "not open", g = b.acquire({"test", "k"}));
	b.open();
	g = b.acquire({"test", "k"});
	cr_assert(row_of("k").there);
}

/* ---- keys --------------------------------------------------------------------------------- */

Test(making, keys_are_of_strings_too)
{
	bizlock::client b = new_client();
	const std::string type = "test", id = "k";
	const char *c = "k";

	for (int form = 0; form < 6; form++) {
		bizlock::guard g = form == 0   ? b.acquire({type, id})
		                   : form == 1 ? b.acquire({"test", id})
		                   : form == 2 ? b.acquire({type, "k"})
		                   : form == 3 ? b.acquire({type, c})
		                   : form == 4 ? b.acquire({"test", std::string(1, 'k')})
		                               : b.acquire(bizlock::key(type, id));

		cr_assert(row_of("k").there, "form %d", form);
		cr_assert_str_eq(g.key().biz_id, "k");
		cr_assert_str_eq(g.key().biz_type, "test");
	}
	cr_assert(no_row("k"));
}

Test(making, several_keys_may_mix_both)
{
	bizlock::client b = new_client();
	const std::string id = "2";
	bizlock::guard g = b.acquire({{"test", "1"}, {"test", id}, {"test", std::to_string(3)}});

	cr_assert_eq(g.size(), 3);
	cr_assert(row_of("1").there && row_of("2").there && row_of("3").there);
	g.release();

	bizlock_key first = {"test", "1"};
	bizlock::key second("test", id);

	g = b.acquire({first, second});
	cr_assert_eq(g.size(), 2);
	cr_assert_str_eq(g.key(1).biz_id, "2");
}

/* Cut at the NUL, it would lock "k". */
Test(making, a_string_with_a_nul_is_no_key)
{
	bizlock::client b = new_client();
	const std::string id("k\0k", 3);
	std::error_code ec;
	bizlock::guard g;

	expect_throw(INVALID, "biz_id", g = b.acquire({"test", id}));
	g = b.try_acquire({{id, "1"}, {"test", "2"}}, bizlock::options(), ec);
	expect_code(INVALID, ec);
	cr_assert(no_row("k") && no_row("2"));
}

/* ---- who has lost --------------------------------------------------------------------------- */

static std::atomic<int> losses;
static std::string owner;

static void tell(const bizlock_loss &loss)
{
	owner = loss.owner ? loss.owner : "a thread";
	losses++;
}

Test(making, a_loss_names_its_owner)
{
	bizlock::client b;
	bizlock::options how("task-17");

	b.on_loss(tell);
	how.flags = BIZLOCK_NO_RENEW;
	how.lease(std::chrono::milliseconds(300));

	bizlock::guard g = b.acquire({"test", "k"}, how);

	eventually(losses == 1);
	cr_assert_str_eq(owner.c_str(), "task-17");
}
