/* The base of bizlock.hpp, which includes and explains it: the class that stands for a namespace,
 * errors, durations. */
#ifndef BIZLOCK_BASE_HPP
#define BIZLOCK_BASE_HPP

#include <chrono>
#include <cstdint>
#include <exception>
#include <limits>
#include <ratio>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bizlock.h"

#if defined(__cpp_exceptions) || defined(__EXCEPTIONS)
#define BIZLOCK_EXCEPTIONS_
#endif

struct BIZLOCK_API bizlock {
	class error;   /* the exception */
	class client;  /* the `bizlock *` of C */
	class options; /* of an acquisition */
	class text;    /* a char *, or that of a std::string */
	class key;     /* a type and an id */
	class keys;    /* one key, or several, to acquire */
	struct defer_open;
	class guard;    /* one lock, or several, acquired */
	class requests; /* of an event loop: bizlock_async.hpp */

	/* The numbers of bizlock.h as a category of std::error_code. */
	static const std::error_category &category() noexcept;

	bizlock() = delete;
	bizlock(const bizlock &) = delete;
	bizlock &operator=(const bizlock &) = delete;
	~bizlock() = delete;

private:
	struct held;

	/* Throws, with the last message of b; NULL: with the text of rc. */
	[[noreturn]] static void fail(int rc, const bizlock *b);

	/* Throws unless rc is OK. */
	static void check(int rc, const bizlock *b)
	{
		if (rc != BIZLOCK_OK)
			fail(rc, b);
	}

	/* In whole milliseconds, rounded up, not below `least` and not above the largest T.
	 * Computes in long double, because a product of integers may overflow. */
	template <class T, class Rep, class Period>
	static T to_ms(std::chrono::duration<Rep, Period> d, T least) noexcept
	{
		const T most = std::numeric_limits<T>::max();
		const long double ms = std::chrono::duration<long double, std::milli>(d).count();
		T whole;

		if (!(ms > static_cast<long double>(least))) /* true for NaN, too */
			return least;
		if (ms >= static_cast<long double>(most))
			return most;
		whole = static_cast<T>(ms);
		return static_cast<long double>(whole) < ms ? whole + 1 : whole;
	}

	/* For options where C's 0 means the default: zero stays 0, a negative d becomes 1. */
	template <class Duration> static std::uint32_t ms_or_default(Duration d) noexcept
	{
		return d == Duration::zero() ? 0 : to_ms<std::uint32_t>(d, 1);
	}
};

namespace std
{
template <> struct is_error_code_enum<bizlock_error> : true_type {
};
} // namespace std

inline std::error_code make_error_code(bizlock_error number) noexcept
{
	return std::error_code(number, bizlock::category());
}

inline const std::error_category &bizlock::category() noexcept
{
	struct of_bizlock final : std::error_category {
		const char *name() const noexcept override { return "bizlock"; }
		std::string message(int rc) const override { return bizlock_strerror(rc); }

		/* Only the errors that mean the same as an errc. */
		std::error_condition default_error_condition(int rc) const noexcept override
		{
			switch (rc) {
			case BIZLOCK_BUSY:
				return std::errc::device_or_resource_busy;
			case BIZLOCK_TIMEOUT:
				return std::errc::timed_out;
			case BIZLOCK_CANCELLED:
				return std::errc::operation_canceled;
			case BIZLOCK_NOT_OWNER:
				return std::errc::operation_not_permitted;
			case BIZLOCK_INVALID:
				return std::errc::invalid_argument;
			case BIZLOCK_NOMEM:
				return std::errc::not_enough_memory;
			default:
				return std::error_condition(rc, *this);
			}
		}
	};
	static const of_bizlock instance{};

	return instance;
}

/* ---- errors ------------------------------------------------------------- */

class BIZLOCK_API bizlock::error : public std::system_error
{
public:
	error(int number, const char *message)
	    : std::system_error(number, category()), message_(message)
	{
	}

	/* BIZLOCK_BUSY and so on; code() has it too. */
	int number() const noexcept { return code().value(); }

	/* What bizlock_errmsg() says: key, holder, the server's own words. */
	const char *what() const noexcept override { return message_.what(); }

private:
	std::runtime_error message_; /* unlike std::string it can be copied without a throw */
};

inline void bizlock::fail(int rc, const bizlock *b)
{
#ifdef BIZLOCK_EXCEPTIONS_
	/* NOMEM may come from this header, and then b has no message of it. */
	throw error(rc, b && rc != BIZLOCK_NOMEM ? bizlock_errmsg(b) : bizlock_strerror(rc));
#else
	(void)rc;
	(void)b;
	std::terminate();
#endif
}

#endif
