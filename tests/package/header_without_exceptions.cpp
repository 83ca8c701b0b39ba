// With -fno-exceptions, all that takes a std::error_code can be used.
#include <bizlock.hpp>

int main()
{
	std::error_code ec;
	bizlock::client locks({{"database", "shop"}}, ec);

	locks.on_lost([](bizlock_key, std::uint64_t) {}, ec);
	locks.on_loss([](const bizlock_loss &) {}, ec);
	bizlock::guard g =
	        locks.try_acquire_for({"order", "4711"}, std::chrono::seconds(1), {}, ec);

	g.renew(std::chrono::minutes(1), ec);
	g.release(ec);
	return ec ? 1 : 0;
}
