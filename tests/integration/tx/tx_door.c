/* What the functions of bizlock_tx.h ask of a connection and of its transaction,
 * and how they leave both. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cr_tx.h"

TestSuite(tx_door, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

static const char *const names[CALLS] = {"row lock", "fence", "commit"};

/* A client that holds "k". */
static bizlock *holder(void)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = 600000));
	return b;
}

#define expect_each(want, b, tx)                                                                   \
	for (int which_ = 0; which_ < CALLS; which_++) {                                           \
		int rc_ = tx_call(which_, (b), KEY("k"), (tx));                                    \
		cr_assert(rc_ == BIZLOCK_##want, "%s: %s, not BIZLOCK_%s: %s", names[which_],      \
		          bizlock_err_name(rc_), #want, bizlock_errmsg(b));                        \
	}

/* ---- arguments ------------------------------------------------------------------ */

TX_TEST(tx_door, bad_arguments_leave_the_transaction_open)
{
	bizlock *b = holder();
	MYSQL *tx = tx_open();
	bizlock_key bad[] = {
	        {NULL, "k"}, {"test", NULL}, {"", "k"}, {"test", ""}, {"test", "\xff"}};

	tx_begin(tx, 1);
	expect_each(INVALID, b, NULL);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (int which = 0; which < CALLS; which++)
			expect(INVALID, b, tx_call(which, b, bad[i], tx));
	for (uint32_t flag = 4; flag; flag <<= 1)
		expect(INVALID, b, bizlock_row_lock(b, KEY("k"), tx, flag));
	expect(INVALID, b, bizlock_row_lock(b, KEY("k"), tx, BIZLOCK_ROW_WAIT | BIZLOCK_ROW_SKIP));
	expect(INVALID, b, bizlock_fence(b, KEY("k"), "a b", tx));
	expect(INVALID, b, bizlock_commit(b, KEY("k"), "", tx));
	expect(INVALID, b, bizlock_commit(b, KEY("k"), "17", tx));
	tx_commits(tx, 1);
}

TX_TEST(tx_door, a_client_that_is_not_open_is_misuse)
{
	bizlock *b = client_new(&world, NULL);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect_each(MISUSE, b, tx);
	tx_commits(tx, 1);
	bizlock_close(b);
}

/* ---- no transaction --------------------------------------------------------------- */

TX_TEST(tx_door, no_transaction_is_misuse)
{
	bizlock *b = holder();
	MYSQL *tx = tx_open();

	expect_each(MISUSE, b, tx);
	tx_begin(tx, 1);
	db_run(tx, "COMMIT");
	expect_each(MISUSE, b, tx);
	tx_begin(tx, 2);
	db_run(tx, "ROLLBACK");
	expect_each(MISUSE, b, tx);
	db_run(tx, "INSERT INTO ledger VALUES (3)");
	expect_each(MISUSE, b, tx);
	cr_assert(ledger_has(3));
}

/* With autocommit off, the first statement that reads or writes a table begins the transaction. */
TX_TEST(tx_door, autocommit_off_is_no_transaction_before_the_first_statement)
{
	bizlock *b = holder();
	MYSQL *tx = tx_open();

	db_run(tx, "SET SESSION autocommit = 0");
	expect_each(MISUSE, b, tx);
	for (int which = 0; which < CALLS; which++) {
		db_run(tx, "INSERT INTO ledger VALUES (%d)", 10 + which);
		expect(OK, b, tx_call(which, b, KEY("k"), tx));
		cr_assert_eq(ledger_has(10 + which), which == COMMIT);
		db_run(tx, "COMMIT");
		cr_assert(ledger_has(10 + which));
		expect_each(MISUSE, b, tx);
	}
}

Test(tx_door, a_handle_that_was_never_connected_is_misuse)
{
	bizlock *b = holder();
	MYSQL *tx = mysql_init(NULL);

	expect_each(MISUSE, b, tx);
	mysql_close(tx);
}

/* The header promises that nothing is sent. If something were, a session that reconnects would lose
 * its state, and unread results would be lost. */
static void misused(MYSQL *tx, struct proxy *p, bizlock *b)
{
	unsigned packets = proxy_packets(p);

	expect_each(MISUSE, b, tx);
	cr_assert_eq(proxy_packets(p), packets, "something was sent");
}

/* libmysqlclient complains about this option on stderr, where bizlock's tests must write
 * nothing. */
static void reconnect_automatically(MYSQL *tx, char on)
{
	int err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (err < 0 || dup2(null, STDERR_FILENO) < 0)
		die("no stderr to turn away");
	mysql_options(tx, MYSQL_OPT_RECONNECT, &on);
	dup2(err, STDERR_FILENO);
	close(err);
	close(null);
}

TX_TEST(tx_door, automatic_reconnection_is_misuse)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = holder();
	MYSQL *tx = tx_through(p, 0);

	tx_begin(tx, 1);
	reconnect_automatically(tx, 1);
	misused(tx, p, b);
	reconnect_automatically(tx, 0);
	tx_commits(tx, 1);
	proxy_stop(p);
}

/* ---- unread results ----------------------------------------------------------------- */

TX_TEST(tx_door, an_unread_result_is_misuse_and_can_still_be_read)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = holder();
	MYSQL *tx = tx_through(p, 0);
	MYSQL_RES *rows;
	int n = 0;

	tx_begin(tx, 1);
	cr_assert_eq(mysql_query(tx, "SELECT 1 UNION SELECT 2 UNION SELECT 3"), 0);
	misused(tx, p, b);
	rows = mysql_use_result(tx);
	cr_assert(rows && mysql_fetch_row(rows));
	misused(tx, p, b);
	for (n = 1; mysql_fetch_row(rows);)
		n++;
	cr_assert_eq(n, 3);
	mysql_free_result(rows);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 1);
	proxy_stop(p);
}

TX_TEST(tx_door, a_further_result_is_misuse_and_can_still_be_read)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = holder();
	MYSQL *tx = tx_through(p, CLIENT_MULTI_STATEMENTS);
	MYSQL_RES *rows;

	tx_begin(tx, 1);
	cr_assert_eq(mysql_query(tx, "SELECT 1; SELECT 'second'"), 0);
	mysql_free_result(mysql_store_result(tx));
	misused(tx, p, b);
	cr_assert_eq(mysql_next_result(tx), 0);
	rows = mysql_store_result(tx);
	cr_assert_str_eq(mysql_fetch_row(rows)[0], "second");
	mysql_free_result(rows);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 1);
	proxy_stop(p);
}

TX_TEST(tx_door, rows_of_a_prepared_statement_are_misuse_and_can_still_be_read)
{
	static const char text[] = "SELECT 1 UNION SELECT 2 UNION SELECT 3";
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = holder();
	MYSQL *tx = tx_through(p, 0);
	MYSQL_STMT *stmt = mysql_stmt_init(tx);
	int n = 0;

	tx_begin(tx, 1);
	cr_assert_eq(mysql_stmt_prepare(stmt, text, sizeof(text) - 1), 0);
	cr_assert_eq(mysql_stmt_execute(stmt), 0);
	misused(tx, p, b);
	while (mysql_stmt_fetch(stmt) == 0)
		n++;
	cr_assert_eq(n, 3);
	mysql_stmt_close(stmt);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 1);
	proxy_stop(p);
}
