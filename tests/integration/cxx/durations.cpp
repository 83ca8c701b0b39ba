/* Durations of std::chrono: rounded up to milliseconds, and never into another meaning. */
#include <atomic>
#include <limits>
#include <thread>

#include "cr_cxx.hpp"

TestSuite(durations, .init = cxx_begin, .fini = world_end, .timeout = 240);

using real_seconds = std::chrono::duration<double>;
using thirds = std::chrono::duration<std::int64_t, std::ratio<1, 3>>;
using tiny = std::chrono::duration<signed char, std::milli>;

template <class Duration> static std::uint32_t lease_of(Duration d)
{
	return bizlock::options().lease(d).lease_ms;
}

Test(durations, are_rounded_up)
{
	cr_assert_eq(lease_of(std::chrono::nanoseconds(1)), 1);
	cr_assert_eq(lease_of(std::chrono::microseconds(999)), 1);
	cr_assert_eq(lease_of(std::chrono::microseconds(1000)), 1);
	cr_assert_eq(lease_of(std::chrono::microseconds(1001)), 2);
	cr_assert_eq(lease_of(std::chrono::milliseconds(12345)), 12345);
	cr_assert_eq(lease_of(std::chrono::hours(24)), BIZLOCK_LEASE_MAX_MS);
	cr_assert_eq(lease_of(thirds(1)), 334);
	cr_assert_eq(lease_of(thirds(3)), 1000);
	cr_assert_eq(lease_of(tiny(127)), 127);
	cr_assert_eq(lease_of(real_seconds(0.25)), 250);
	cr_assert_eq(lease_of(real_seconds(1e-9)), 1);
}

Test(durations, end_where_c_has_no_number)
{
	const std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
	const double infinite = std::numeric_limits<double>::infinity();

	cr_assert_eq(lease_of(std::chrono::milliseconds(most - 1LL)), most - 1);
	cr_assert_eq(lease_of(std::chrono::milliseconds(most + 1LL)), most);
	cr_assert_eq(lease_of(std::chrono::hours::max()), most);
	cr_assert_eq(lease_of(thirds::max()), most);
	cr_assert_eq(lease_of(real_seconds(infinite)), most);
	cr_assert_eq(bizlock::options().min_hold(std::chrono::hours::max()).min_hold_ms, most);
	cr_assert_eq(bizlock::options().max_hold(std::chrono::hours::max()).max_hold_ms, most);
}

/* Zero is C's: the client's own lease, no rest, no bound. A program that has computed less than
 * nothing gets the shortest there is. */
Test(durations, less_than_nothing_is_not_nothing)
{
	cr_assert_eq(lease_of(std::chrono::seconds(0)), 0);
	cr_assert_eq(lease_of(std::chrono::nanoseconds(-1)), 1);
	cr_assert_eq(lease_of(std::chrono::hours::min()), 1);
	cr_assert_eq(lease_of(real_seconds(std::numeric_limits<double>::quiet_NaN())), 1);
	cr_assert_eq(bizlock::options().max_hold(std::chrono::seconds(0)).max_hold_ms, 0);
	cr_assert_eq(bizlock::options().max_hold(std::chrono::seconds(-1)).max_hold_ms, 1);
	cr_assert_eq(bizlock::options().min_hold(std::chrono::seconds(-1)).min_hold_ms, 0);
}

Test(durations, of_leases_are_judged_by_the_library)
{
	bizlock::client b = new_client();

	expect_throw(INVALID, "lease_ms",
	             bizlock::guard got = b.acquire(
	                     {"test", "k"}, bizlock::options().lease(std::chrono::hours(25))));
	expect_throw(INVALID, "lease_ms",
	             bizlock::guard got = b.acquire(
	                     {"test", "k"}, bizlock::options().lease(std::chrono::hours(-1))));
	cr_assert_eq(b.acquire({"test", "k"}, bizlock::options().lease(std::chrono::minutes(2)))
	                     .grant()
	                     .lease_ms,
	             120000);
}

/* BUSY: tried once. TIMEOUT: waited. */
template <class Duration> static std::error_code waited(bizlock::client &b, Duration d)
{
	std::error_code ec;

	cr_assert(!b.try_acquire_for({"test", "k"}, d, {}, ec));
	return ec;
}

Test(durations, of_waits_that_are_over_at_once_try_once)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});

	expect_code(BUSY, waited(b, std::chrono::seconds(0)));
	expect_code(BUSY, waited(b, std::chrono::milliseconds(-1)));
	expect_code(BUSY, waited(b, std::chrono::nanoseconds(-1)));
	expect_code(BUSY, waited(b, std::chrono::hours::min()));
	expect_code(BUSY, waited(b, real_seconds(-1e300)));
	expect_code(BUSY, waited(b, real_seconds(std::numeric_limits<double>::quiet_NaN())));
}

Test(durations, of_short_waits_end)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});
	std::int64_t start;

	expect_code(TIMEOUT, waited(b, std::chrono::nanoseconds(1)));
	expect_code(TIMEOUT, waited(b, real_seconds(1e-30)));
	start = now_ms();
	expect_code(TIMEOUT, waited(b, std::chrono::microseconds(99001)));
	cr_assert_geq(now_ms() - start, 99);
}

/* It must neither be taken for "for ever" (-1), nor wrap into the past. */
template <class Duration> static void waits_and_gets(Duration d)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard theirs = other.acquire({"test", "k"});
	std::atomic<bool> has{false};
	std::thread waiter([&] { has = static_cast<bool>(b.try_acquire_for({"test", "k"}, d)); });

	eventually(doorbell_waiters(&world) == 1);
	theirs.release();
	waiter.join();
	cr_assert(has);
}

Test(durations, of_the_longest_waits_wait)
{
	waits_and_gets(std::chrono::hours::max());
	waits_and_gets(std::chrono::milliseconds::max());
	waits_and_gets(std::chrono::nanoseconds::max());
	waits_and_gets(real_seconds(std::numeric_limits<double>::infinity()));
}
