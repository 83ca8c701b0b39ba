// All of bizlock.hpp and bizlock_async.hpp compiles, and without the connector's header; what works
// in transactions does when bizlock_tx.h is included behind it, too.
#include <bizlock_async.hpp>

static bizlock::guard acquire(bizlock::client &locks, const bizlock_key *keys, std::error_code &ec)
{
	std::chrono::duration<float> d(1);
	bizlock::options how("task-17");
	bizlock::guard g = locks.acquire({"order", "4711"});

	how.lease(d).min_hold(d).max_hold(d);
	g = locks.acquire(keys[0], how, ec);
	g = locks.acquire({keys, 2});
	g = locks.acquire({keys[0], keys[1]}, how);
	g = locks.try_acquire({{"order", "4711"}}, how);
	g = locks.try_acquire({{"order", "4711"}, {"order", "4712"}}, {}, ec);
	g = locks.try_acquire({"order", std::to_string(4711)}, how);
	g = locks.try_acquire({{"order", std::to_string(4711)}, {"order", "4712"}}, how);
	g = locks.try_acquire(bizlock::key("order", std::string("4711")), how);
	g = locks.try_acquire_for({"order", "4711"}, d);
	g = locks.try_acquire_for({"order", "4711"}, d, how, ec);
	return g;
}

static bizlock::client open(std::error_code &ec)
{
	bizlock::client one{{"database", "shop"}},
	        two({{"database", "shop"}, {"port", "3306"}}, ec);
	bizlock::client three{bizlock::defer_open()}, four(bizlock::defer_open(), ec), five,
	        six(ec);

	three.set("database", "shop");
	three.set("database", "shop", ec);
	three.open();
	three.open(ec);
	three.on_lost([](bizlock_key, std::uint64_t) {});
	three.on_lost([](bizlock_key, std::uint64_t) {}, ec);
	three.on_loss([](const bizlock_loss &) {});
	three.on_loss([](const bizlock_loss &) {}, ec);
	four = std::move(one);
	return bizlock_errmsg(three.get()) == three.errmsg() ? std::move(three) : std::move(two);
}

static void use(bizlock::guard &g, std::error_code &ec)
{
	g.report_to(&ec);
	g.renew();
	g.renew(std::chrono::minutes(1));
	g.renew(std::chrono::minutes(1), ec);
	if (g && !g.lost() && g.left() > std::chrono::seconds(1) && g.fence() == g.grant().fence &&
	    g.size() == 1 && g.key().biz_id && !g.owner())
		g.release(ec);
	g.release();
}

static void ask(const bizlock::client &locks, bizlock::guard &g, std::error_code &ec)
{
	const auto keep = [&g](const bizlock_result &, bizlock::guard got) { g = std::move(got); };
	const auto ignore = [](const bizlock_result &) {};
	const std::chrono::seconds d(1);
	bizlock::requests requests(locks);

	requests.acquire({"order", "4711"}, bizlock::options("task-17"), keep);
	requests.acquire({"order", "4711"}, bizlock::options("task-17"), keep, ec);
	requests.try_acquire_for({"order", "4711"}, d, bizlock::options("task-17"), keep);
	requests.try_acquire_for({"order", "4711"}, d, bizlock::options("task-17"), keep, ec);
	requests.release(std::move(g), ignore);
	requests.release(std::move(g), ignore, ec);
}

#include <bizlock_tx.h>

int main()
{
	const bizlock_key keys[] = {{"order", "4711"}, {"order", "4712"}};
	MYSQL *tx = nullptr;

	try {
		std::error_code ec;
		bizlock::client locks = open(ec);
		bizlock::guard g = acquire(locks, keys, ec);

		ask(locks, g, ec);
		g.fence(tx);
		g.fence(tx, ec);
		g.commit(tx);
		g.commit(tx, ec);
		use(g, ec);
		return ec == BIZLOCK_BUSY || ec == std::errc::timed_out;
	} catch (const bizlock::error &e) {
		return e.number() == BIZLOCK_OK || e.code() == BIZLOCK_OK || !*e.what();
	}
}
