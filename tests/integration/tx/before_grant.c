/* A transaction that has read before its owner had the lock sees what was there before the holder
 * before it, and would undo that one's work. */
#define _GNU_SOURCE 1

#include "cr_tx.h"

TestSuite(before_grant, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define LONG_MS 600000
#define SOON_MS 10000
#define STALE_WORD "acquire, then begin"

/* Each statement of the transaction reads what is there by then. */
#define ALWAYS_FRESH (tx_way == TX_READ_COMMITTED)

/* bizlock_commit() in two packets, and in one. */
static const unsigned long forms[] = {0, CLIENT_MULTI_STATEMENTS};

#define FORMS 2

static MYSQL *tx_of_form(int form)
{
	return tx_connect(&world.at, world.schema, forms[form]);
}

static long long stock_seen_by(MYSQL *db)
{
	return db_number(db, "SELECT left_ FROM stock");
}

/* Committed, or nothing of it is to be seen. Returns which. */
static bool commit_ended(bizlock *b, MYSQL *tx, int id, bool fresh)
{
	if (fresh) {
		expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
		cr_assert(ledger_has(id));
		return true;
	}
	expect(STALE, b, bizlock_commit(b, KEY("k"), NULL, tx));
	expect_message(b, STALE_WORD);
	nothing_is_left_of(tx, id);
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	cr_assert_gt(bizlock_left_ms(b, KEY("k"), NULL), 0, "the hold is as it was");
	return false;
}

/* Two that sell from one stock, each by: begin, look, acquire, look, write, commit. */
TX_TEST(before_grant, no_sale_is_lost)
{
	bizlock *a = client(NULL), *b = client(NULL);
	int sold = 0;

	db_run(world.admin, "CREATE TABLE stock (left_ INT) ENGINE=InnoDB");
	db_run(world.admin, "INSERT INTO stock VALUES (100)");
	for (int form = 0; form < FORMS; form++) {
		MYSQL *first = tx_of_form(form), *second = tx_of_form(form);
		long long seen;

		tx_begin(first, 0);
		tx_begin(second, 10 + form);
		expect(OK, a, acquire(a, "k", .lease_ms = LONG_MS));
		seen = stock_seen_by(second);
		db_run(first, "UPDATE stock SET left_ = left_ - 1");
		db_run(first, "COMMIT");
		expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
		sold++;
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		if (ALWAYS_FRESH)
			seen = stock_seen_by(second);
		if (db_try(second, "UPDATE stock SET left_ = %lld", seen - 1))
			sold += commit_ended(b, second, 10 + form, ALWAYS_FRESH);
		else /* snapshot isolation has noticed already */
			expect(MISUSE, b, bizlock_commit(b, KEY("k"), NULL, second));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		cr_assert_eq(stock_seen_by(world.admin), 100 - sold);
	}
}

TX_TEST(before_grant, a_fence_says_so_and_leaves_the_transaction_open)
{
	bizlock *b = client(NULL);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	if (ALWAYS_FRESH) {
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	} else {
		for (int i = 0; i < 2; i++) {
			expect(STALE, b, bizlock_fence(b, KEY("k"), NULL, tx));
			expect_message(b, STALE_WORD);
			cr_assert(tx_is_open(tx));
		}
	}
	db_run(tx, "ROLLBACK");
	tx_begin(tx, 2);
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	tx_commits(tx, 2);
}

/* The lock was held when the transaction read, by the same owner; but not all the time since. */
TX_TEST(before_grant, a_hold_that_was_given_back_since_does_not_count)
{
	bizlock *a = client(NULL), *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		expect(OK, a, acquire(a, "k", .lease_ms = LONG_MS));
		tx_begin(tx, 1 + form);
		expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		expect(OK, a, acquire(a, "k", .lease_ms = LONG_MS));
		commit_ended(a, tx, 1 + form, ALWAYS_FRESH);
		expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	}
}

/* A takeover, and a release that hands the lock to the next thread of the same client. */
TX_TEST(before_grant, no_way_to_get_the_lock_is_left_out)
{
	bizlock *a = client(NULL), *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);
		struct call next;

		expect(OK, a, acquire(a, "k", .lease_ms = 300, .wait_ms = -1));
		tx_begin(tx, 1 + form);
		lease_is_over("k");
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		commit_ended(b, tx, 1 + form, ALWAYS_FRESH);
		expect(LOST, a, bizlock_release(a, KEY("k"), NULL, NULL));
		tx_begin(tx, 11 + form);
		call_start(&next, b, "k", .wait_ms = SOON_MS, .owner = "next");
		call_blocks(&next);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		cr_assert_eq(call_join(&next), BIZLOCK_OK, "%s", next.errmsg);
		cr_assert_eq(bizlock_commit(b, KEY("k"), "next", tx),
		             ALWAYS_FRESH ? BIZLOCK_OK : BIZLOCK_STALE, "%s", bizlock_errmsg(b));
		expect(OK, b, bizlock_release(b, KEY("k"), "next", NULL));
	}
}

/* The fence is the one that the snapshot shows. */
TX_TEST(before_grant, an_import_is_a_grant)
{
	char text[BIZLOCK_EXPORT_MAX];
	bizlock *a = client(NULL), *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		expect(OK, a, acquire(a, "k", .lease_ms = LONG_MS));
		tx_begin(tx, 1 + form);
		expect(OK, a, bizlock_export(a, KEY("k"), NULL, text, sizeof(text)));
		expect(OK, b, bizlock_import(b, text, NULL, NULL));
		commit_ended(b, tx, 1 + form, ALWAYS_FRESH);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
}

TX_TEST(before_grant, shared_locks_are_no_exception)
{
	bizlock *b = client(NULL);
	static const uint32_t ways[] = {BIZLOCK_SHARED, 0};

	for (int way = 0; way < 2; way++)
		for (int form = 0; form < FORMS; form++) {
			MYSQL *tx = tx_of_form(form);
			int id = 1 + form + 10 * way;
			bizlock_acquire_opts opts = OPTS(.lease_ms = LONG_MS, .flags = ways[way]);

			tx_begin(tx, id);
			expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
			commit_ended(b, tx, id, ALWAYS_FRESH);
			tx_begin(tx, 20 + id);
			commit_ended(b, tx, 20 + id, true);
			expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
		}
}

/* ---- nothing is stale that is not ------------------------------------------------------- */

/* Locked, but not read yet: the snapshot comes later than the grant. */
TX_TEST(before_grant, a_transaction_that_has_only_begun_is_fresh)
{
	bizlock *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		db_run(tx, "START TRANSACTION");
		db_run(tx, "INSERT INTO ledger VALUES (%d)", 1 + form);
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		commit_ended(b, tx, 1 + form, true);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
}

/* Whatever becomes of the hold meanwhile, it is the same. */
TX_TEST(before_grant, renewal_and_reentry_make_nothing_stale)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, 1 + form);
		expect(OK, b, bizlock_renew(b, KEY("k"), NULL, LONG_MS / 2));
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
		commit_ended(b, tx, 1 + form, true);
	}
}

/* All that such a transaction has read is locked until it ends. */
TX_TEST(before_grant, a_serializable_transaction_is_fresh)
{
	bizlock *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		db_run(tx, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE");
		tx_begin(tx, 1 + form);
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		commit_ended(b, tx, 1 + form, true);
		expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
}

/* That the lock is gone is what counts. */
TX_TEST(before_grant, what_is_lost_is_told_as_lost)
{
	bizlock *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, 1 + form);
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
		expect(LOST, b, bizlock_commit(b, KEY("k"), NULL, tx));
		nothing_is_left_of(tx, 1 + form);
		expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
	}
}
