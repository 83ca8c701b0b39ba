/* Requests of bizlock_async.h in C++: an acquired lock comes as a guard. For programs with an event
 * loop. bizlock.hpp says what holds for all classes.
 *
 *     bizlock::client locks{{"database", "shop"}};
 *     bizlock::guard order;
 *     bool ended = false;
 *
 *     bizlock::requests(locks).acquire({"order", "4711"}, bizlock::options("task-17"),
 *                                      [&](const bizlock_result &, bizlock::guard got) {
 *                                          order = std::move(got); // empty unless rc is OK
 *                                          ended = true;
 *                                      });
 *     while (!ended && bizlock_dispatch(locks.get(), nullptr) == BIZLOCK_OK) {
 *         // wait until bizlock_fd(locks.get()) is readable
 *     }
 *
 * A guard releases its lock by a call that waits for the server. Where the event loop must not
 * wait, give the guard to requests::release().
 *
 * Each function returns the number of the request, for bizlock_cancel(). It takes a callable, which
 * is called once and destroyed then; if the request is not started, the callable is destroyed at
 * once. A callable that throws ends the program by std::terminate(), because its caller is C. */
#ifndef BIZLOCK_ASYNC_HPP
#define BIZLOCK_ASYNC_HPP

#include <algorithm>
#include <cstring>
#include <memory>

#include "bizlock.hpp"
#include "bizlock_async.h"

class bizlock::requests
{
public:
	/* Requests of this client. The client may move, and must outlive each call. */
	explicit requests(const client &of) noexcept : b_(of.get()) {}

	/* One key, or several, all or none. Waits for ever. Calls done(const bizlock_result &,
	 * bizlock::guard): the guard is empty unless the lock was acquired. `how` has to name an
	 * owner. */
	template <class F>
	std::uint64_t acquire(const keys &which, const options &how, F done, std::error_code &ec)
	{
		return take(which, how, -1, std::move(done), ec);
	}
	template <class F> std::uint64_t acquire(const keys &which, const options &how, F done)
	{
		std::error_code ec;

		return checked(acquire(which, how, std::move(done), ec), ec);
	}

	/* Waits for d at most; zero: tries once. */
	template <class Rep, class Period, class F>
	std::uint64_t try_acquire_for(const keys &which, std::chrono::duration<Rep, Period> d,
	                              const options &how, F done, std::error_code &ec)
	{
		return take(which, how, to_ms<std::int64_t>(d, 0), std::move(done), ec);
	}
	template <class Rep, class Period, class F>
	std::uint64_t try_acquire_for(const keys &which, std::chrono::duration<Rep, Period> d,
	                              const options &how, F done)
	{
		std::error_code ec;

		return checked(try_acquire_for(which, d, how, std::move(done), ec), ec);
	}

	/* Releases what the guard has, and calls done(const bizlock_result &). The guard is empty
	 * when this returns, unless the request was not started. */
	template <class F> std::uint64_t release(guard &&given, F done, std::error_code &ec)
	{
		std::unique_ptr<asked<F>> a(new (std::nothrow) asked<F>(std::move(done)));
		std::uint64_t request = 0;
		int rc = a ? BIZLOCK_OK : BIZLOCK_NOMEM;

		if (rc == BIZLOCK_OK && !given)
			rc = BIZLOCK_NOT_OWNER;
		if (rc == BIZLOCK_OK)
			rc = bizlock_release_all_start(b_, given.held_->keys, given.size(),
			                               given.owner(), asked<F>::released, a.get(),
			                               &request);
		ec.assign(rc, category());
		if (rc != BIZLOCK_OK)
			return 0;
		a.release();
		held::free(given.held_);
		given.held_ = nullptr;
		return request;
	}
	template <class F> std::uint64_t release(guard &&given, F done)
	{
		const bool asks_c = static_cast<bool>(given);
		std::error_code ec;
		const std::uint64_t request = release(std::move(given), std::move(done), ec);

		check(ec.value(), asks_c ? b_ : nullptr);
		return request;
	}

private:
	template <class F> struct asked {
		explicit asked(F &&fn) : done(std::move(fn)) {}
		asked(const asked &) = delete;
		asked &operator=(const asked &) = delete;
		~asked() { held::free(grants); }

		static void acquired(void *arg, const bizlock_result *result) noexcept
		{
			std::unique_ptr<asked> a(static_cast<asked *>(arg));
			held *h = a->grants;

			if (!result->grant) {
				a->done(*result, guard());
				return;
			}
			/* The linked library may know more or fewer fields. */
			for (std::size_t i = 0; i < h->count; i++) {
				std::memcpy(
				        &h->grants[i], result->grants[i],
				        std::min(sizeof(bizlock_grant), result->grants[i]->size));
				h->grants[i].size = sizeof(bizlock_grant);
			}
			a->grants = nullptr;
			a->done(*result, guard(h));
		}

		static void released(void *arg, const bizlock_result *result) noexcept
		{
			std::unique_ptr<asked> a(static_cast<asked *>(arg));

			a->done(*result);
		}

		F done;
		held *grants = nullptr; /* of an acquisition: room for its guard */
	};

	template <class F>
	std::uint64_t take(const keys &which, const options &how, std::int64_t wait_ms, F done,
	                   std::error_code &ec)
	{
		std::unique_ptr<asked<F>> a(new (std::nothrow) asked<F>(std::move(done)));
		bizlock_acquire_opts opts = how;
		std::uint64_t request = 0;
		int rc = BIZLOCK_NOMEM;

		opts.wait_ms = wait_ms;
		if (a)
			a->grants = held::make(b_, which.data(), which.size(), how.owner);
		if (a && a->grants && which.size() == 1)
			rc = bizlock_acquire_start(b_, *which.data(), &opts, asked<F>::acquired,
			                           a.get(), &request);
		else if (a && a->grants)
			rc = bizlock_acquire_all_start(b_, which.data(), which.size(), &opts,
			                               asked<F>::acquired, a.get(), &request);
		ec.assign(rc, category());
		if (rc == BIZLOCK_OK)
			a.release();
		return request;
	}

	std::uint64_t checked(std::uint64_t request, const std::error_code &ec) const
	{
		check(ec.value(), b_);
		return request;
	}

	bizlock *b_;
};

#endif
