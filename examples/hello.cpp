/* hello.c in C++: the lock is given back on every way out, and errors are exceptions.
 *
 * Where the server is comes from the environment and from the option files, as there. */
#include <bizlock.hpp>
#include <iostream>

static void on_lost(bizlock_key key, std::uint64_t fence)
{
	std::cerr << key.biz_type << '/' << key.biz_id << " is lost, fence " << fence << '\n';
}

static int hello()
{
	bizlock::client locks{{"lease_ms", "10000"}};
	bizlock::options how;

	locks.on_lost(on_lost);
	how.note = "hello";

	bizlock::guard order =
	        locks.try_acquire_for({"order", "4711"}, std::chrono::seconds(5), how);

	if (!order) {
		std::cerr << locks.errmsg() << '\n'; /* which names the holder */
		return 1;
	}
	std::cout << "order 4711 is ours for " << order.left().count() << " ms, fence "
	          << order.fence() << '\n';
	order.release(); /* its end would do that, too, but could not say that the lock was lost */
	return 0;
}

int main()
{
	try {
		return hello();
	} catch (const bizlock::error &e) {
		std::cerr << bizlock_err_name(e.number()) << ": " << e.what() << '\n';
		return 1;
	}
}
