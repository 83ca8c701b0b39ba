/* bizlock for C++11 and later: clients and guards that clean up in their destructors, durations of
 * std::chrono, errors as exceptions or as std::error_code. Header only, over bizlock.h. bizlock.h
 * is the manual: what it says of a call holds here too.
 *
 *     bizlock::client locks{{"database", "shop"}, {"lease_ms", "10000"}}; // set, and open
 *     bizlock::guard order = locks.acquire({"order", "4711"});
 *
 *     if (bizlock::guard both = locks.try_acquire_for({{"stock", "1"}, {"stock", "2"}},
 *                                                     std::chrono::seconds(5)))
 *         work(both.fence(), both.left());
 *     order.release(); // or the end of its scope, which cannot report that the lock was lost
 *
 * THE NAME
 *
 * `bizlock` is a type in bizlock.h, so it cannot be a namespace. Here it becomes a class that
 * nobody can make, and the classes of C++ are its members: write `using guard = bizlock::guard;`
 * where you would write a using-declaration. `bizlock *` stays what it is in C, and
 * client::get() returns it, for the functions that have no counterpart here.
 *
 * ERRORS
 *
 * A function throws bizlock::error, with number and message. Its overload that takes a
 * std::error_code & throws nothing, as in std::filesystem: a lock that somebody else holds is no
 * exceptional case, and an error code can be compared. The overload always sets the code, also to
 * OK; client::errmsg() has the message. ec == BIZLOCK_BUSY and ec == std::errc::timed_out
 * compare as they read. try_acquire() and try_acquire_for() return an empty guard for BUSY and
 * TIMEOUT, and throw all other errors. Without exceptions (-fno-exceptions) a function that would
 * throw calls std::terminate(): there, use the overloads with a std::error_code.
 *
 * DURATIONS
 *
 * are rounded up to milliseconds: a wait of 1 ns is one of 1 ms. A duration outside the range of C
 * becomes the nearest in range: a negative wait tries once, and the longest lasts 292 million
 * years. A lease of zero is the default, as in C; a lease that is negative, too short or too long
 * is INVALID.
 *
 * THREADS
 *
 * Any thread may use a client; a guard is for one thread at a time. The owner of a hold is the
 * thread that acquired it, unless options name an owner. A guard that moves to another thread needs
 * a named owner: without a name its release there is NOT_OWNER, and the first thread keeps the
 * lock. A guard must be destroyed before its client. The client may move meanwhile. */
#ifndef BIZLOCK_HPP
#define BIZLOCK_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "bizlock_base.hpp"
#include "bizlock_guard.hpp"

/* ---- what an acquisition takes ------------------------------------------ */

/* The options of C, initialized. Set owner, note and flags as in C, durations by these functions.
 * wait_ms is not looked at: each function says how long it waits. Texts must live until the call.
 */
class bizlock::options : public bizlock_acquire_opts
{
public:
	options() noexcept : options(nullptr) {}
	explicit options(const char *owner_name) noexcept
	    : bizlock_acquire_opts(BIZLOCK_ACQUIRE_OPTS_INIT)
	{
		owner = owner_name;
	}

	template <class Rep, class Period>
	options &lease(std::chrono::duration<Rep, Period> d) noexcept
	{
		lease_ms = ms_or_default(d);
		return *this;
	}

	/* At most 2^32 - 1 ms, 49 days; longer durations are cut to that. So are those of
	 * max_hold(), for which that is no limit at all. */
	template <class Rep, class Period>
	options &min_hold(std::chrono::duration<Rep, Period> d) noexcept
	{
		min_hold_ms = to_ms<std::uint32_t>(d, 0);
		return *this;
	}
	template <class Rep, class Period>
	options &max_hold(std::chrono::duration<Rep, Period> d) noexcept
	{
		max_hold_ms = ms_or_default(d);
		return *this;
	}
};

/* A text of C, or that of a std::string. It holds no copy, so the string must live until the call:
 * a temporary string does within the call itself, {"order", std::to_string(4711)}. A string with a
 * NUL inside is no key: a call with it is INVALID. */
class bizlock::text
{
public:
	text(const char *from) noexcept : start_(from) {}

	/* Cut at the NUL, it would be the key of another lock. */
	text(const std::string &from) noexcept
	    : start_(from.find('\0') == std::string::npos ? from.c_str() : nullptr)
	{
	}

	const char *start() const noexcept { return start_; }

private:
	const char *start_;
};

/* The key of C. */
class bizlock::key : public bizlock_key
{
public:
	key(bizlock_key from) noexcept : bizlock_key(from) {}
	key(text biz_type, text biz_id) noexcept : bizlock_key{biz_type.start(), biz_id.start()} {}
};

/* The keys of a call: a parameter, not a container, because it holds no copies. {"order", "4711"},
 * where either may be a std::string, a bizlock_key, {{"stock", "1"}, {"stock", "2"}}, or
 * {array, how_many}. */
class bizlock::keys
{
public:
	keys(bizlock_key one) noexcept : one_(one) {}
	keys(text biz_type, text biz_id) noexcept : one_{biz_type.start(), biz_id.start()} {}
	keys(const bizlock_key *all, std::size_t n) noexcept : one_(), all_(all), size_(all ? n : 0)
	{
	}
	keys(std::initializer_list<key> all) noexcept : keys(all.begin(), all.size())
	{
		static_assert(sizeof(key) == sizeof(bizlock_key), "C reads the keys as an array");
	}

	const bizlock_key *data() const noexcept { return all_ ? all_ : &one_; }
	std::size_t size() const noexcept { return size_; }

private:
	bizlock_key one_;
	const bizlock_key *all_ = nullptr;
	std::size_t size_ = 1;
};

/* ---- a client ----------------------------------------------------------- */

/* Chooses the constructor of a client that is not open yet, as std::defer_lock does of a
 * std::unique_lock: bizlock::client locks{bizlock::defer_open()}. */
struct bizlock::defer_open {
	explicit defer_open() = default;
};

/* Can be moved. The destructor closes the client, which releases what is still held (option
 * release_on_close). */
class bizlock::client
{
public:
	struct setting {
		const char *option, *value; /* of bizlock_set() */
	};

	/* Opened, with the options of the environment and of the option files; and with `all`. The
	 * client exists also after an error in ec, for errmsg(). */
	client() : client(std::initializer_list<setting>()) {}
	explicit client(std::error_code &ec) noexcept : client(std::initializer_list<setting>(), ec)
	{
	}
	client(std::initializer_list<setting> all) : client(defer_open())
	{
		check(open_with(all), b_);
	}
	client(std::initializer_list<setting> all, std::error_code &ec) noexcept
	    : client(defer_open(), ec)
	{
		if (!ec)
			ec.assign(open_with(all), category());
	}

	/* Not open yet: call set(), and then open(). */
	explicit client(defer_open) { check(bizlock_new(&b_), nullptr); }
	client(defer_open, std::error_code &ec) noexcept
	{
		ec.assign(bizlock_new(&b_), category());
	}

	client(client &&from) noexcept : b_(from.b_), lost_(from.lost_.exchange(nullptr))
	{
		from.b_ = nullptr;
	}
	client &operator=(client &&from) noexcept
	{
		client now(std::move(from)); /* its destructor closes the client that was here */

		std::swap(b_, now.b_);
		lost_ = now.lost_.exchange(lost_);
		return *this;
	}

	~client()
	{
		bizlock_close(b_);
		for (lost_fn *fn = lost_, *next; fn; fn = next) {
			next = fn->next;
			delete fn;
		}
	}

	void set(const char *option, const char *value)
	{
		check(bizlock_set(b_, option, value), b_);
	}
	void set(const char *option, const char *value, std::error_code &ec) noexcept
	{
		ec.assign(bizlock_set(b_, option, value), category());
	}

	void open() { check(bizlock_open(b_), b_); }
	void open(std::error_code &ec) noexcept { ec.assign(bizlock_open(b_), category()); }

	/* Calls fn(bizlock_key, std::uint64_t fence) for each hold that is lost, as
	 * bizlock_on_lost() does: in a thread of the library. Exceptions of fn are swallowed,
	 * because nobody could catch them. Every fn lives as long as the client, because a call of
	 * an earlier fn may still be running. on_loss() calls fn(const bizlock_loss &), which
	 * names the owner; a client has one fn, of either kind. */
	template <class F> void on_lost(F fn)
	{
		std::error_code ec;

		on_lost(std::move(fn), ec);
		check(ec.value(), b_);
	}
	template <class F> void on_lost(F fn, std::error_code &ec)
	{
		lost_fn_of<F> *kept = keep(std::move(fn), ec);

		if (kept)
			ec.assign(bizlock_on_lost(b_, lost_fn_of<F>::lost, kept), category());
	}
	template <class F> void on_loss(F fn)
	{
		std::error_code ec;

		on_loss(std::move(fn), ec);
		check(ec.value(), b_);
	}
	template <class F> void on_loss(F fn, std::error_code &ec)
	{
		lost_fn_of<F> *kept = keep(std::move(fn), ec);

		if (kept)
			ec.assign(bizlock_on_loss(b_, lost_fn_of<F>::loss, kept), category());
	}

	/* As in C. A signal handler calls bizlock_stop() with a pointer from get(), and has to be
	 * gone before the client is moved or destroyed. A call that is stopped answers CANCELLED,
	 * also try_acquire() and try_acquire_for(): they return no empty guard then. */
	void stop(bool on = true) noexcept { bizlock_stop(b_, on); }
	void interrupt() noexcept { bizlock_interrupt(b_); }

	/* As in C; false: no thread waits for the key under this name, or an error. */
	bool cancel_wait(const bizlock_key &key, const char *owner) noexcept
	{
		return bizlock_cancel_wait(b_, key, owner) == BIZLOCK_OK;
	}

	/* Waits for ever. */
	BIZLOCK_MUST_CHECK guard acquire(const keys &which, const options &how = options())
	{
		return take(which, how, -1);
	}
	BIZLOCK_MUST_CHECK guard acquire(const keys &which, const options &how,
	                                 std::error_code &ec) noexcept
	{
		return take(which, how, -1, ec);
	}

	/* Once. */
	BIZLOCK_MUST_CHECK guard try_acquire(const keys &which, const options &how = options())
	{
		return take(which, how, 0);
	}
	BIZLOCK_MUST_CHECK guard try_acquire(const keys &which, const options &how,
	                                     std::error_code &ec) noexcept
	{
		return take(which, how, 0, ec);
	}

	/* For d at most. */
	template <class Rep, class Period>
	BIZLOCK_MUST_CHECK guard try_acquire_for(const keys &which,
	                                         std::chrono::duration<Rep, Period> d,
	                                         const options &how = options())
	{
		return take(which, how, to_ms<std::int64_t>(d, 0));
	}
	template <class Rep, class Period>
	BIZLOCK_MUST_CHECK guard try_acquire_for(const keys &which,
	                                         std::chrono::duration<Rep, Period> d,
	                                         const options &how, std::error_code &ec) noexcept
	{
		return take(which, how, to_ms<std::int64_t>(d, 0), ec);
	}

	/* The message of the calling thread's last failed call on this client or its guards. */
	const char *errmsg() const noexcept { return bizlock_errmsg(b_); }

	bizlock *get() const noexcept { return b_; }

private:
	struct lost_fn {
		virtual ~lost_fn() = default;
		lost_fn *next = nullptr;
	};
	template <class F> struct lost_fn_of final : lost_fn {
		explicit lost_fn_of(F &&f) : fn(std::move(f)) {}

		static void lost(void *arg, bizlock_key key, std::uint64_t fence) noexcept
		{
			call(arg, key, fence);
		}
		static void loss(void *arg, const bizlock_loss *what) noexcept { call(arg, *what); }

		F fn;

	private:
		template <class... Args> static void call(void *arg, const Args &...args) noexcept
		{
#ifdef BIZLOCK_EXCEPTIONS_
			try {
				static_cast<lost_fn_of *>(arg)->fn(args...);
			} catch (...) {
			}
#else
			static_cast<lost_fn_of *>(arg)->fn(args...);
#endif
		}
	};

	/* NULL, and NOMEM in ec: out of memory. */
	template <class F> lost_fn_of<F> *keep(F fn, std::error_code &ec)
	{
		auto *kept = new (std::nothrow) lost_fn_of<F>(std::move(fn));

		ec = BIZLOCK_NOMEM;
		if (!kept)
			return nullptr;
		kept->next = lost_;
		while (!lost_.compare_exchange_weak(kept->next, kept)) {
		}
		return kept;
	}

	int open_with(std::initializer_list<setting> all) noexcept
	{
		int rc = BIZLOCK_OK;

		for (const setting &one : all)
			rc = rc == BIZLOCK_OK ? bizlock_set(b_, one.option, one.value) : rc;
		return rc == BIZLOCK_OK ? bizlock_open(b_) : rc;
	}

	guard take(const keys &which, const options &how, std::int64_t wait_ms,
	           std::error_code &ec) noexcept
	{
		held *h = held::make(b_, which.data(), which.size(), how.owner);
		bizlock_acquire_opts opts = how;
		int rc = BIZLOCK_NOMEM;

		opts.wait_ms = wait_ms;
		if (h && which.size() == 1)
			rc = bizlock_acquire(b_, *which.data(), &opts, h->grants);
		else if (h) /* no keys: no grants, and the call refuses */
			rc = bizlock_acquire_all(b_, which.data(), which.size(), &opts,
			                         which.size() ? h->grants : nullptr);
		ec.assign(rc, category());
		if (rc == BIZLOCK_OK)
			return guard(h);
		held::free(h);
		return guard();
	}

	guard take(const keys &which, const options &how, std::int64_t wait_ms)
	{
		std::error_code ec;
		guard taken = take(which, how, wait_ms, ec);

		if (wait_ms < 0 || (ec != BIZLOCK_BUSY && ec != BIZLOCK_TIMEOUT))
			check(ec.value(), b_);
		return taken;
	}

	bizlock *b_ = nullptr;
	std::atomic<lost_fn *> lost_{nullptr};
};

#endif
