/* The guard of bizlock.hpp, which includes this file: releases acquired locks in its destructor. */
#ifndef BIZLOCK_GUARD_HPP
#define BIZLOCK_GUARD_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "bizlock_base.hpp"

/* The data of a guard, in one allocation, which is made before anything is sent. Behind the struct
 * stand the grants, the keys, and the bytes of owner and keys, in the order of alignment. */
struct alignas(bizlock_grant) bizlock::held {
	bizlock *client;
	std::error_code *report;
	std::size_t count;
	bizlock_grant *grants;
	bizlock_key *keys;
	const char *owner;

	/* NULL: out of memory. */
	static held *make(bizlock *client, const bizlock_key *keys, std::size_t n,
	                  const char *owner) noexcept
	{
		std::size_t size = sizeof(held) + size_of(owner);

		for (std::size_t i = 0; i < n; i++)
			size += sizeof(bizlock_grant) + sizeof(bizlock_key) +
			        size_of(keys[i].biz_type) + size_of(keys[i].biz_id);

		void *block = ::operator new(size, std::nothrow);

		return block ? new (block) held(client, keys, n, owner) : nullptr;
	}

	static void free(held *h) noexcept { ::operator delete(h); }

private:
	held(bizlock *b, const bizlock_key *all, std::size_t n, const char *name) noexcept
	    : client(b), report(nullptr), count(n),
	      grants(reinterpret_cast<bizlock_grant *>(this + 1)),
	      keys(reinterpret_cast<bizlock_key *>(grants + n)), owner(nullptr)
	{
		char *text = reinterpret_cast<char *>(keys + n);

		owner = copy(text, name);
		for (std::size_t i = 0; i < n; i++) {
			const char *biz_type = copy(text, all[i].biz_type);
			const char *biz_id = copy(text, all[i].biz_id);

			new (grants + i) bizlock_grant BIZLOCK_GRANT_INIT;
			new (keys + i) bizlock_key{biz_type, biz_id};
		}
	}

	/* Takes NULL, which bizlock_acquire() refuses later. */
	static std::size_t size_of(const char *text) noexcept
	{
		return text ? std::strlen(text) + 1 : 0;
	}

	/* Copies text to `to`, and moves `to` behind the copy. */
	static const char *copy(char *&to, const char *text) noexcept
	{
		char *at = to;

		to += size_of(text);
		return text ? static_cast<const char *>(std::memcpy(at, text, size_of(text)))
		            : nullptr;
	}
};

/* One level of one lock, or of several locks that were acquired together. Can be moved; the
 * destructor releases the level. A guard that was made empty, moved from or released is empty: it
 * is false, and its functions answer NOT_OWNER. */
class bizlock::guard
{
public:
	guard() noexcept = default;
	guard(guard &&from) noexcept : held_(from.held_) { from.held_ = nullptr; }
	guard &operator=(guard &&from) noexcept
	{
		guard now(std::move(from)); /* its destructor releases what was held here */

		std::swap(held_, now.held_);
		return *this;
	}

	/* Never throws. The result of the release: see report_to(), client::errmsg(). */
	~guard()
	{
		std::error_code *report = held_ ? held_->report : nullptr;
		const int rc = give_back();

		if (report)
			report->assign(rc, category());
		held::free(held_);
	}

	/* The destructor writes the result of its release to *ec, which must live until then. */
	void report_to(std::error_code *ec) noexcept
	{
		if (held_)
			held_->report = ec;
	}

	/* True until released or moved from, even if the lock is lost. */
	explicit operator bool() const noexcept { return held_ != nullptr; }

	/* How long the lock may be relied on; of several locks, the shortest time. Makes no round
	 * trip. Zero or less: do not touch what the lock guards. */
	std::chrono::milliseconds left() const noexcept
	{
		std::int64_t least = held_ ? left_of(0) : 0;

		for (std::size_t i = 1; held_ && i < held_->count; i++)
			least = left_of(i) < least ? left_of(i) : least;
		return std::chrono::milliseconds(least);
	}

	/* Not empty, but not held any more. */
	bool lost() const noexcept { return held_ && left().count() <= 0; }

	/* All but size() need a guard that is not empty, and i < size(). */
	std::size_t size() const noexcept { return held_ ? held_->count : 0; }
	const bizlock_key &key(std::size_t i = 0) const noexcept { return held_->keys[i]; }
	const bizlock_grant &grant(std::size_t i = 0) const noexcept { return held_->grants[i]; }
	std::uint64_t fence() const noexcept { return held_->grants[0].fence; }
	const char *owner() const noexcept { return held_->owner; } /* NULL: the thread */

	/* The guard is empty afterwards, even after an error: the level is released in this client.
	 * Except TIMEOUT (another thread's call on the hold gets no answer): a guard of one key
	 * holds as before; of several keys, release the one concerned by bizlock_release(). */
	void release()
	{
		const bizlock *b = client();
		check(give_back(), b);
	}
	void release(std::error_code &ec) noexcept { ec.assign(give_back(), category()); }

	/* Starts each lease anew: d is its length from now on; zero: the length it has. Tries all
	 * leases; the first error counts. */
	template <class Rep = std::int64_t, class Period = std::milli>
	void renew(std::chrono::duration<Rep, Period> d = std::chrono::milliseconds(0))
	{
		check(renew_all(ms_or_default(d)), client());
	}
	template <class Rep, class Period>
	void renew(std::chrono::duration<Rep, Period> d, std::error_code &ec) noexcept
	{
		ec.assign(renew_all(ms_or_default(d)), category());
	}

	/* bizlock_downgrade() for all keys; the first error counts. */
	void downgrade() { check(downgrade_all(), client()); }
	void downgrade(std::error_code &ec) noexcept { ec.assign(downgrade_all(), category()); }

	/* bizlock_fence() and bizlock_commit() for all keys; tx: a MYSQL *. Include bizlock_tx.h
	 * for them. Roll back after an error: with several keys the transaction may be open. */
	template <class Tx> void fence(Tx *tx) { check(fence_in(tx, size()), client()); }
	template <class Tx> void fence(Tx *tx, std::error_code &ec) noexcept
	{
		ec.assign(fence_in(tx, size()), category());
	}
	template <class Tx> void commit(Tx *tx) { check(commit_in(tx), client()); }
	template <class Tx> void commit(Tx *tx, std::error_code &ec) noexcept
	{
		ec.assign(commit_in(tx), category());
	}

private:
	friend class bizlock::client;
	friend class bizlock::requests;
	explicit guard(held *h) noexcept : held_(h) {}
	bizlock *client() const noexcept { return held_ ? held_->client : nullptr; }

	std::int64_t left_of(std::size_t i) const noexcept
	{
		return bizlock_left_ms(held_->client, held_->keys[i], held_->owner);
	}

	int renew_all(std::uint32_t lease_ms) noexcept
	{
		int first = held_ ? BIZLOCK_OK : BIZLOCK_NOT_OWNER;

		for (std::size_t i = 0; i < size(); i++) {
			int rc = bizlock_renew(client(), key(i), owner(), lease_ms);

			first = first == BIZLOCK_OK ? rc : first;
		}
		return first;
	}

	int downgrade_all() noexcept
	{
		int first = held_ ? BIZLOCK_OK : BIZLOCK_NOT_OWNER;

		for (std::size_t i = 0; i < size(); i++) {
			int rc = bizlock_downgrade(client(), key(i), owner());

			first = first == BIZLOCK_OK ? rc : first;
		}
		return first;
	}

	int give_back() noexcept
	{
		int rc;

		if (!held_)
			return BIZLOCK_NOT_OWNER;
		if (held_->count == 1)
			rc = bizlock_release(held_->client, key(), owner(), nullptr);
		else
			rc = bizlock_release_all(held_->client, held_->keys, held_->count, owner());
		if (rc != BIZLOCK_TIMEOUT || held_->count > 1) {
			held::free(held_);
			held_ = nullptr;
		}
		return rc;
	}

	/* bizlock_fence() for the first n keys. */
	template <class Tx> int fence_in(Tx *tx, std::size_t n) noexcept
	{
		int rc = held_ ? BIZLOCK_OK : BIZLOCK_NOT_OWNER;

		for (std::size_t i = 0; rc == BIZLOCK_OK && i < n; i++)
			rc = bizlock_fence(client(), key(i), owner(), tx);
		return rc;
	}

	template <class Tx> int commit_in(Tx *tx) noexcept
	{
		int rc = fence_in(tx, held_ ? size() - 1 : 0);

		return rc == BIZLOCK_OK ? bizlock_commit(client(), key(size() - 1), owner(), tx)
		                        : rc;
	}

	held *held_ = nullptr;
};

#endif
