/* standby.c in C++: connections, locks and the client are given back on every way out. What it is
 * for, and what it needs, is said there. */
#include <atomic>
#include <bizlock.hpp>
#include <bizlock_tx.h>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>

static std::atomic<bizlock *> to_stop{nullptr}; /* for the signal handler */
static std::atomic<bool> asked_to_go{false};

extern "C" void on_signal(int)
{
	asked_to_go = true;
	bizlock_stop(to_stop, 1); /* ends the wait for the lead */
}

/* While it is there, signals stop the client, which has to outlive it. */
struct stops_by_signal {
	explicit stops_by_signal(const bizlock::client &locks)
	{
		to_stop = locks.get();
		for (int number : {SIGTERM, SIGINT})
			std::signal(number, on_signal);
	}
	~stops_by_signal()
	{
		for (int number : {SIGTERM, SIGINT})
			std::signal(number, SIG_DFL);
	}
	stops_by_signal(const stops_by_signal &) = delete;
	stops_by_signal &operator=(const stops_by_signal &) = delete;
};

using connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>; /* its end rolls back */

/* To the server that has the locks, also after a failover. */
static connection connect(bizlock::client &locks)
{
	connection db(mysql_init(nullptr), mysql_close);
	const int rc = db ? bizlock_connect(locks.get(), db.get()) : BIZLOCK_NOMEM;

	if (rc != BIZLOCK_OK)
		throw bizlock::error(rc, locks.errmsg());
	return db;
}

static void run(MYSQL *db, const std::string &sql)
{
	if (mysql_real_query(db, sql.data(), sql.size()) != 0)
		throw std::runtime_error(mysql_error(db));
}

/* One piece of work, in a transaction that only the leader can commit. */
static void work(MYSQL *db, bizlock::guard &leadership)
{
	run(db, "START TRANSACTION");
	run(db, "INSERT INTO standby_log (fence, pid, at) VALUES (" +
	                std::to_string(leadership.fence()) + ", " + std::to_string(getpid()) +
	                ", UTC_TIMESTAMP(6))");
	leadership.commit(db);
}

/* Until the lead is lost, or somebody asks us to go. */
static void lead(bizlock::client &locks, bizlock::guard &leadership)
{
	const bool took_over = leadership.grant().flags & BIZLOCK_TOOK_OVER;

	std::cout << "leading, fence " << leadership.fence()
	          << (took_over ? ": look for half-done work" : "") << std::endl;
	while (!asked_to_go && !leadership.lost()) {
		try {
			const connection db = connect(locks);

			while (!asked_to_go && !leadership.lost()) {
				work(db.get(), leadership);
				std::this_thread::sleep_for(std::chrono::milliseconds(100));
			}
		} catch (const std::exception &e) { /* a new connection, unless the lead is lost */
			std::cerr << e.what() << std::endl;
			std::this_thread::sleep_for(std::chrono::seconds(1));
		}
	}
	std::cout << "leading no more" << std::endl;
}

int main(int argc, char **argv)
{
	const std::string service = argc > 1 ? argv[1] : "service";

	try {
		bizlock::client locks;
		stops_by_signal stops(locks);

		std::cout << "waiting" << std::endl;
		while (!asked_to_go) {
			std::error_code ec;
			bizlock::guard leadership =
			        locks.acquire({"standby", service}, bizlock::options(), ec);

			if (leadership)
				lead(locks, leadership);
			else if (ec != BIZLOCK_CANCELLED) {
				std::cerr << locks.errmsg() << std::endl;
				std::this_thread::sleep_for(std::chrono::seconds(1));
			}
		}
		return 0;
	} catch (const std::exception &e) {
		std::cerr << e.what() << std::endl;
		return 1;
	}
}
