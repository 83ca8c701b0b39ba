/* Errors of bizlock.hpp: exceptions with number and message, or codes; and callbacks. */
#include <atomic>
#include <stdexcept>
#include <thread>

#include "cr_cxx.hpp"

TestSuite(throwing, .init = cxx_begin, .fini = world_end, .timeout = 240);

/* ---- what does not throw, by its type ------------------------------------------------ */

template <class T> T &some() noexcept;
using code = std::error_code;
using seconds = std::chrono::seconds;

static_assert(std::is_nothrow_constructible<bizlock::client, code &>::value, "");
static_assert(std::is_nothrow_move_constructible<bizlock::client>::value, "");
static_assert(noexcept(some<bizlock::client>().set("", "", some<code>())), "");
static_assert(noexcept(some<bizlock::client>().open(some<code>())), "");
static_assert(noexcept(some<bizlock::client>().acquire({"", ""}, {}, some<code>())), "");
static_assert(noexcept(some<bizlock::client>().try_acquire({"", ""}, {}, some<code>())), "");
static_assert(noexcept(some<bizlock::client>().try_acquire_for({"", ""}, some<seconds>(), {},
                                                               some<code>())),
              "");
static_assert(noexcept(some<bizlock::guard>().release(some<code>())), "");
static_assert(noexcept(some<bizlock::guard>().renew(some<seconds>(), some<code>())), "");
static_assert(noexcept(some<bizlock::guard>().fence(&some<MYSQL>(), some<code>())), "");
static_assert(noexcept(some<bizlock::guard>().commit(&some<MYSQL>(), some<code>())), "");
static_assert(!noexcept(some<bizlock::guard>().release()), "");
static_assert(std::is_nothrow_copy_constructible<bizlock::error>::value,
              "a copy that throws would end the process");

/* ---- number and message -------------------------------------------------------------- */

Test(throwing, an_error_has_number_and_message)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});

	lose_all();
	try {
		theirs.release();
		cr_assert_fail("released what was lost");
	} catch (const std::system_error &e) {
		cr_assert(e.code() == BIZLOCK_LOST);
		cr_assert_str_eq(e.code().category().name(), "bizlock");
		cr_assert_str_eq(e.what(), other.errmsg());
		cr_assert_eq(dynamic_cast<const bizlock::error &>(e).number(), BIZLOCK_LOST);
	}
	expect_throw(MISUSE, "open already", b.open());
}

Test(throwing, what_is_stopped_is_cancelled)
{
	bizlock::client b = new_client();
	std::error_code ec;

	b.stop();
	expect_throw(CANCELLED, "", bizlock::guard none = b.acquire({"test", "k"}));
	expect_throw(CANCELLED, "", bizlock::guard none = b.try_acquire({"test", "k"}));
	b.stop(false);
	cr_assert(b.try_acquire({"test", "k"}, bizlock::options(), ec));
	cr_assert(!ec);
}

/* Later errors of the client must not change what is on its way to a handler. */
Test(throwing, an_error_keeps_its_message)
{
	bizlock::client b = new_client();
	std::error_code ec;

	try {
		bizlock::guard lost = b.acquire({"test", "lost"});

		lose_all();
		bizlock::guard got = b.acquire({"test", ""});
	} catch (const bizlock::error &e) {
		bizlock::error copy = e;

		cr_assert_eq(copy.number(), BIZLOCK_INVALID);
		cr_assert_str_neq(copy.what(), b.errmsg()); /* which is the guard's by now */
		cr_assert(std::string(copy.what()).find("biz_id") != std::string::npos, "%s",
		          copy.what());
	}
}

Test(throwing, codes_compare_with_numbers_and_conditions)
{
	std::error_code busy = BIZLOCK_BUSY, lost = BIZLOCK_LOST;

	cr_assert(busy == BIZLOCK_BUSY && busy != BIZLOCK_TIMEOUT && busy != lost);
	cr_assert(busy == std::errc::device_or_resource_busy);
	cr_assert(std::error_code(BIZLOCK_TIMEOUT) == std::errc::timed_out);
	cr_assert(std::error_code(BIZLOCK_CANCELLED) == std::errc::operation_canceled);
	cr_assert(std::error_code(BIZLOCK_NOT_OWNER) == std::errc::operation_not_permitted);
	cr_assert(std::error_code(BIZLOCK_INVALID) == std::errc::invalid_argument);
	cr_assert(std::error_code(BIZLOCK_NOMEM) == std::errc::not_enough_memory);
	cr_assert(busy != std::errc::timed_out && lost != std::errc::timed_out);
	cr_assert(!std::error_code(BIZLOCK_OK));
	cr_assert(busy.message() == bizlock_strerror(BIZLOCK_BUSY));
}

/* ---- who has it ----------------------------------------------------------------------- */

Test(throwing, to_be_taken_is_no_exception_for_those_that_try)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});
	std::error_code ec;

	cr_assert(!b.try_acquire({"test", "k"}));
	cr_assert(!b.try_acquire_for({"test", "k"}, std::chrono::milliseconds(20)));
	cr_assert(!b.try_acquire({"test", "k"}, {}, ec));
	expect_code(BUSY, ec);
	cr_assert(!b.try_acquire_for({"test", "k"}, std::chrono::milliseconds(20), {}, ec));
	expect_code(TIMEOUT, ec);
	cr_assert(std::string(b.errmsg()).find("k") != std::string::npos);
	theirs.release();
	cr_assert(b.try_acquire_for({"test", "k"}, std::chrono::seconds(20), {}, ec));
	expect_code(OK, ec);
}

Test(throwing, all_else_is_an_exception_for_them_too)
{
	bizlock::client b = new_client();
	bizlock::guard lost = b.acquire({"test", "k"});
	std::error_code ec;

	lose_all();
	expect_throw(LOST, "k", lost.renew());
	expect_throw(LOST, "k", bizlock::guard got = b.try_acquire({"test", "k"}));
	expect_throw(LOST, "k",
	             bizlock::guard got = b.try_acquire_for({"test", "k"}, std::chrono::hours(1)));
	expect_throw(LOST, "k", bizlock::guard got = b.acquire({"test", "k"}));
	cr_assert(!b.acquire({"test", "k"}, {}, ec));
	expect_code(LOST, ec);
}

Test(throwing, an_interrupted_wait_is_an_exception)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});
	std::atomic<bool> done{false};
	std::thread waiter([&] {
		expect_throw(CANCELLED, "k", bizlock::guard got = b.acquire({"test", "k"}));
		done = true;
	});

	eventually((bizlock_interrupt(b.get()), done.load()));
	waiter.join();
}

Test(throwing, a_wait_that_is_cancelled_alone_is_one_too)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});
	std::thread waiter([&] {
		expect_throw(CANCELLED, "k",
		             bizlock::guard got =
		                     b.acquire({"test", "k"}, bizlock::options("task")));
	});

	cr_assert_not(b.cancel_wait({"test", "k"}, "other"));
	eventually(b.cancel_wait({"test", "k"}, "task"));
	waiter.join();
}

/* ---- opening -------------------------------------------------------------------------- */

Test(throwing, a_client_that_does_not_open_says_why)
{
	std::error_code ec;
	bizlock::client b({{"database", "no_such_database"}}, ec);

	cr_assert(ec);
	cr_assert(std::string(b.errmsg()).find("no_such_database") != std::string::npos, "%s",
	          b.errmsg());
	b.set("database", world.schema);
	b.open(ec);
	expect_code(OK, ec);
	cr_assert(b.acquire({"test", "k"}));
	expect_throw(INVALID, "no_such_option", bizlock::client({{"no_such_option", "1"}}));
}

Test(throwing, a_client_is_set_and_opened_in_steps)
{
	std::error_code ec;
	bizlock::client b(bizlock::defer_open(), ec);

	expect_code(OK, ec);
	expect_throw(MISUSE, "not open", bizlock::guard got = b.acquire({"test", "k"}));
	b.set("lease_ms", "abc", ec);
	expect_code(INVALID, ec);
	expect_throw(INVALID, "no_such_option", b.set("no_such_option", "1"));
	b.set("lease_ms", "70000");
	b.open();
	cr_assert_eq(b.acquire({"test", "k"}).grant().lease_ms, 70000);
}

/* ---- on_lost ---------------------------------------------------------------------------- */

struct told {
	std::atomic<unsigned> calls{0};
	std::atomic<std::uint64_t> fence{0};
};

static void lose_one(bizlock::client &b, std::uint64_t &fence)
{
	bizlock::guard g = b.acquire({"test", "k"});
	std::error_code ec;

	fence = g.fence();
	lose_all();
	g.renew(std::chrono::seconds(0), ec);
	expect_code(LOST, ec);
}

/* An exception in a thread of the library's would end the process. */
Test(throwing, what_the_function_of_on_lost_throws_ends_there)
{
	bizlock::client b = new_client();
	told all;
	std::uint64_t fence;

	b.on_lost([&all](bizlock_key key, std::uint64_t lost) {
		cr_assert_str_eq(key.biz_id, "k");
		all.fence = lost;
		all.calls++;
		throw std::runtime_error("nobody catches this");
	});
	for (unsigned i = 1; i <= 3; i++) {
		lose_one(b, fence);
		eventually(all.calls == i);
		cr_assert_eq(all.fence, fence);
	}
}

/* The earlier one may be running still: what it holds must be there. The client that is told
 * may have moved. */
Test(throwing, the_last_function_counts_and_all_are_kept)
{
	bizlock::client first = new_client();
	told early, late;
	std::uint64_t fence;
	std::atomic<bool> entered{false}, go_on{false};
	auto text = std::make_shared<std::string>("is there");

	first.on_lost([&, text](bizlock_key, std::uint64_t) {
		entered = true;
		eventually(go_on.load());
		cr_assert_str_eq(text->c_str(), "is there");
		early.calls++;
	});
	lose_one(first, fence);
	eventually(entered.load());
	first.on_lost([&late](bizlock_key, std::uint64_t) { late.calls++; });
	cr_assert_eq(text.use_count(), 2);

	bizlock::client b = std::move(first);

	go_on = true;
	eventually(early.calls == 1);
	lose_one(b, fence);
	eventually(late.calls == 1);
	cr_assert_eq(early.calls, 1);
	b = new_client();
	cr_assert_eq(text.use_count(), 1);
}
