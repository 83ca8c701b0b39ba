/* bizlock_async.hpp: requests whose grants are guards. */
#include <bizlock_async.hpp>
#include <poll.h>

#include "cr_cxx.hpp"

TestSuite(requests, .init = cxx_begin, .fini = world_end, .timeout = 240);

/* What was told, and how often. */
struct told {
	int calls = 0, rc = -1;
	bizlock::guard got;
};

/* A callable that counts those of its kind. */
struct note {
	explicit note(told &to) : to_(&to), alive_(std::make_shared<int>(0)) {}

	void operator()(const bizlock_result &result)
	{
		to_->calls++;
		to_->rc = result.rc;
	}
	void operator()(const bizlock_result &result, bizlock::guard got)
	{
		(*this)(result);
		to_->got = std::move(got);
	}

	told *to_;
	std::shared_ptr<int> alive_;
};

static void dispatch_until_told(const bizlock::client &b, const told &t)
{
	struct pollfd fd = {bizlock_fd(b.get()), POLLIN, 0};

	for (std::int64_t end = now_ms() + PATIENCE_MS; t.calls == 0;) {
		cr_assert_lt(now_ms(), end);
		poll(&fd, 1, 50);
		cr_assert_eq(bizlock_dispatch(b.get(), nullptr), BIZLOCK_OK);
	}
	cr_assert_eq(t.calls, 1);
}

Test(requests, a_grant_is_a_guard)
{
	bizlock::client b = new_client();
	told t;
	note done(t);

	cr_assert_gt(bizlock::requests(b).acquire(key_of("k"), bizlock::options("task"), done), 0);
	dispatch_until_told(b, t);
	cr_assert_eq(t.rc, BIZLOCK_OK);
	cr_assert_eq(done.alive_.use_count(), 1);
	cr_assert_eq(t.got.fence(), row_of("k").fence);
	cr_assert_str_eq(t.got.owner(), "task");
	cr_assert_str_eq(t.got.key().biz_id, "k");
	cr_assert_gt(t.got.left().count(), 0);
	t.got.release();
	cr_assert(no_row("k"));
}

/* It moves into the call, and ends with that. */
Test(requests, a_guard_that_nobody_keeps_gives_the_lock_back)
{
	bizlock::client b = new_client();
	told t;

	bizlock::requests(b).acquire(key_of("k"), bizlock::options("task"),
	                             [&t](const bizlock_result &result, const bizlock::guard &got) {
		                             t.calls++;
		                             cr_assert_eq(result.rc, BIZLOCK_OK);
		                             cr_assert(got);
	                             });
	dispatch_until_told(b, t);
	cr_assert(no_row("k"));
}

Test(requests, what_is_not_granted_is_empty)
{
	bizlock::client b = new_client(), other = new_client();
	bizlock::guard held = other.acquire(key_of("k"));
	told t;

	bizlock::requests(b).try_acquire_for(key_of("k"), std::chrono::seconds(0),
	                                     bizlock::options("task"), note(t));
	dispatch_until_told(b, t);
	cr_assert_eq(t.rc, BIZLOCK_BUSY);
	cr_assert_not(t.got);
}

Test(requests, a_guard_is_given_back_by_one)
{
	bizlock::client b = new_client();
	bizlock::guard got = b.acquire(key_of("k"), bizlock::options("task"));
	told t;

	bizlock::requests(b).release(std::move(got), note(t));
	cr_assert_not(got);
	dispatch_until_told(b, t);
	cr_assert_eq(t.rc, BIZLOCK_OK);
	cr_assert(no_row("k"));
}

Test(requests, several_keys_are_one_guard)
{
	static const bizlock_key keys[] = {{"test", "b"}, {"test", "a"}, {"test", "c"}};
	bizlock::client b = new_client();
	bizlock::requests requests(b);
	told acquired, busy, released;
	note done(acquired), back(released);

	requests.acquire({keys, 3}, bizlock::options("task"), done);
	dispatch_until_told(b, acquired);
	cr_assert_eq(acquired.rc, BIZLOCK_OK);
	cr_assert_eq(acquired.got.size(), 3);
	for (std::size_t i = 0; i < 3; i++) {
		cr_assert_str_eq(acquired.got.key(i).biz_id, keys[i].biz_id);
		cr_assert_eq(acquired.got.grant(i).fence, row_of(keys[i].biz_id).fence);
	}
	requests.try_acquire_for({{"test", "d"}, {"test", "a"}}, std::chrono::seconds(0),
	                         bizlock::options("other"), note(busy));
	dispatch_until_told(b, busy);
	cr_assert_eq(busy.rc, BIZLOCK_BUSY);
	cr_assert_not(busy.got);
	cr_assert(no_row("d"));
	requests.release(std::move(acquired.got), back);
	cr_assert_not(acquired.got);
	dispatch_until_told(b, released);
	cr_assert_eq(released.rc, BIZLOCK_OK);
	cr_assert_eq(back.alive_.use_count(), 1);
	cr_assert_eq(all_rows(&world), 0);
}

/* The guard keeps its lock, and the callable is gone. */
Test(requests, what_cannot_be_started_says_so)
{
	bizlock::client b = new_client();
	bizlock::requests requests(b);
	bizlock::guard threads = b.acquire(key_of("k")), none;
	bizlock::guard two = b.acquire({{"test", "a"}, {"test", "b"}});
	std::error_code ec;
	told t;
	note done(t);

	expect_throw(INVALID, "owner", requests.acquire(key_of("x"), bizlock::options(), done));
	expect_throw(INVALID, "owner", requests.release(std::move(threads), done));
	cr_assert(threads);
	expect_throw(INVALID, "owner", requests.release(std::move(two), done));
	cr_assert(two);
	expect_throw(
	        INVALID, "twice",
	        requests.acquire({{"test", "x"}, {"test", "x"}}, bizlock::options("task"), done));
	requests.release(std::move(none), done, ec);
	expect_code(NOT_OWNER, ec);
	cr_assert_eq(done.alive_.use_count(), 1);
	cr_assert_eq(t.calls, 0);
}

Test(requests, a_client_that_ends_tells_them)
{
	bizlock::client other = new_client();
	bizlock::guard held = other.acquire(key_of("k"));
	told waits, untold;
	note done(waits);

	{
		bizlock::client b = new_client();
		bizlock::requests requests(b);

		requests.acquire(key_of("k"), bizlock::options("task"), done);
		requests.acquire(key_of("free"), bizlock::options("task"), note(untold));
	}
	cr_assert_eq(waits.calls, 1);
	cr_assert_eq(waits.rc, BIZLOCK_CANCELLED);
	cr_assert_eq(done.alive_.use_count(), 1);
	cr_assert_eq(untold.calls, 1);
	cr_assert_not(untold.got);
	cr_assert(no_row("free"));
}
