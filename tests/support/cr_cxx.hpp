/* For integration tests in C++, of bizlock.hpp. */
#ifndef TEST_CR_CXX_HPP
#define TEST_CR_CXX_HPP

#include <bizlock.hpp>
#include <bizlock_tx.h>
#include <criterion/criterion.h>
#include <cstdlib>
#include <string>

extern "C" {
#include "cr_world.h"
#include "patience.h"
}

inline void put_option(const char *variable, const std::string &value)
{
	if (!value.empty())
		setenv(variable, value.c_str(), 1);
}

/* For .init: a world, to which the environment leads clients. */
inline void cxx_begin()
{
	world_begin();
	put_option("BIZLOCK_DATABASE", world.schema);
	put_option("BIZLOCK_HOST", world.at.socket[0] ? "localhost" : world.at.host);
	put_option("BIZLOCK_SOCKET", world.at.socket);
	put_option("BIZLOCK_PORT", world.at.port ? std::to_string(world.at.port) : "");
	put_option("BIZLOCK_USER", world.at.user);
	put_option("BIZLOCK_PASSWORD", world.at.password);
}

/* Opened; with a lease that nothing here outlasts. */
inline bizlock::client new_client()
{
	return bizlock::client{{"lease_ms", "600000"}};
}

inline bizlock_key key_of(const char *id)
{
	return {"test", id};
}

inline struct row row_of(const char *id)
{
	return row_of(&world, key_of(id));
}

inline bool no_row(const char *id)
{
	return no_row(&world, key_of(id));
}

/* Breaks every lock. */
inline void lose_all()
{
	db_run(world.admin, "DELETE FROM biz_lock");
}

/* The call must throw a bizlock::error of this name, whose message has the word. */
#define expect_throw(want, word, call)                                                             \
	do {                                                                                       \
		int got_ = BIZLOCK_OK;                                                             \
		std::string what_;                                                                 \
		try {                                                                              \
			call;                                                                      \
		} catch (const bizlock::error &e) {                                                \
			got_ = e.number();                                                         \
			what_ = e.what();                                                          \
		}                                                                                  \
		cr_assert(got_ == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", #call,             \
		          bizlock_err_name(got_), #want, what_.c_str());                           \
		cr_assert(what_.find(word) != std::string::npos, "\"%s\" not in: %s", word,        \
		          what_.c_str());                                                          \
	} while (0)

/* ec must be of this name. */
#define expect_code(want, ec)                                                                      \
	cr_assert((ec) == BIZLOCK_##want, "%s, not BIZLOCK_%s", bizlock_err_name((ec).value()),    \
	          #want)

#endif
