/* bizlock_commit(): either the transaction is committed, and its owner held the lock, or nothing of
 * it can be seen. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(committing, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

#define LONG_MS 600000

/* In one packet, and in two. */
static const unsigned long forms[] = {CLIENT_MULTI_STATEMENTS, 0};

#define FORMS 2

static bizlock *holder(const char *id, uint32_t lease_ms)
{
	bizlock *b = client(NULL);

	expect(OK, b, acquire(b, id, .lease_ms = lease_ms));
	return b;
}

static MYSQL *tx_of_form(int form)
{
	return tx_connect(&world.at, world.schema, forms[form]);
}

/* ---- by a holder ------------------------------------------------------------------ */

TX_TEST(committing, by_the_holder_is_done)
{
	bizlock *b = holder("k", LONG_MS);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		for (int id = 1; id <= 3; id++) {
			tx_begin(tx, 10 * form + id);
			expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
			cr_assert(!tx_is_open(tx));
			cr_assert(ledger_has(10 * form + id));
		}
	}
	expect(OK, b, bizlock_verify(b, KEY("k"), NULL));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* The holder's own later changes of the row are newer than the snapshot. */
TX_TEST(committing, by_a_holder_who_has_renewed_since_is_done)
{
	bizlock *b = holder("k", LONG_MS);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, form + 1);
		db_number(tx, "SELECT COUNT(*) FROM biz_lock");
		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		expect(OK, b, bizlock_renew(b, KEY("k"), NULL, LONG_MS / 2));
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
		expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
		cr_assert(ledger_has(form + 1));
		cr_assert_eq(row_of(&world, KEY("k")).depth, (unsigned)form + 2);
	}
}

TX_TEST(committing, by_a_named_owner_and_with_an_awkward_key_is_done)
{
	static const char *const ids[] = {"'", "\\", "`\"--", "\xc3\xa1 \n", ";COMMIT;"};
	bizlock *b = client(NULL);

	for (int i = 0; i < 10; i++) {
		MYSQL *tx = tx_of_form(i % 2);

		if (i < 5)
			expect(OK, b, acquire_as(b, ids[i], "a'b\\;"));
		tx_begin(tx, i + 1);
		expect(OK, b, bizlock_commit(b, KEY(ids[i % 5]), "a'b\\;", tx));
		cr_assert(ledger_has(i + 1));
		tx_close(tx);
	}
}

/* The fence keeps nobody away any more. */
TX_TEST(committing, ends_the_fence)
{
	bizlock *a = holder("k", LONG_MS), *b = client(NULL);
	MYSQL *tx = tx_open();

	tx_begin(tx, 1);
	expect(OK, a, bizlock_row_lock(a, KEY("k"), tx, 0));
	expect(OK, a, bizlock_commit(a, KEY("k"), NULL, tx));
	cr_assert(!row_is_locked(b, KEY("k")));
	expect(OK, a, bizlock_release(a, KEY("k"), NULL, NULL));
	expect(OK, b, acquire(b, "k"));
}

/* ---- by nobody who holds ------------------------------------------------------------ */

/* Twice: the first answer comes from the server, the next from memory. */
static void is_rolled_back_as_lost(bizlock *b)
{
	for (int i = 0; i < 2 * FORMS; i++) {
		MYSQL *tx = tx_of_form(i % FORMS);

		tx_begin(tx, i + 1);
		expect(LOST, b, bizlock_commit(b, KEY("k"), NULL, tx));
		expect_message(b, "k");
		nothing_is_left_of(tx, i + 1);
		tx_begin(tx, 100 + i);
		tx_commits(tx, 100 + i);
	}
	cr_assert_leq(bizlock_left_ms(b, KEY("k"), NULL), 0);
}

TX_TEST(committing, after_a_takeover_is_rolled_back)
{
	bizlock *a = holder("k", 300), *b = client(NULL);

	lease_is_over("k");
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	is_rolled_back_as_lost(a);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

TX_TEST(committing, after_a_takeover_and_release_is_rolled_back)
{
	bizlock *a = holder("k", 300), *b = client(NULL);

	lease_is_over("k");
	expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	is_rolled_back_as_lost(a);
}

TX_TEST(committing, after_a_break_is_rolled_back)
{
	bizlock *a = holder("k", LONG_MS);

	expect(OK, a, bizlock_break(a, KEY("k"), row_of(&world, KEY("k")).fence));
	is_rolled_back_as_lost(a);
}

/* In the transaction's snapshot, the lock is still held. */
TX_TEST(committing, by_a_holder_in_the_snapshot_alone_is_rolled_back)
{
	for (int form = 0; form < FORMS; form++) {
		bizlock *a = holder("k", LONG_MS), *b = client(NULL);
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, 1);
		db_number(tx, "SELECT COUNT(*) FROM biz_lock");
		expect(OK, b, bizlock_break(b, KEY("k"), row_of(&world, KEY("k")).fence));
		expect(LOST, a, bizlock_commit(a, KEY("k"), NULL, tx));
		nothing_is_left_of(tx, 1);
	}
}

TX_TEST(committing, after_the_lease_is_rolled_back)
{
	bizlock *a = holder("k", 300);

	lease_is_over("k");
	is_rolled_back_as_lost(a);
}

/* The lease is over by the server's clock alone, so the packet with the COMMIT is sent. */
TX_TEST(committing, after_a_lease_that_only_the_server_sees_over_is_rolled_back)
{
	for (int form = 0; form < FORMS; form++) {
		bizlock *b = client(NULL);
		MYSQL *tx = tx_of_form(form);

		expect(OK, b, acquire(b, "k", .lease_ms = LONG_MS));
		db_run(world.admin, "UPDATE biz_lock SET timeout = UTC_TIMESTAMP(6)");
		tx_begin(tx, 1);
		expect(LOST, b, bizlock_commit(b, KEY("k"), NULL, tx));
		nothing_is_left_of(tx, 1);
		expect(LOST, b, bizlock_release(b, KEY("k"), NULL, NULL));
		db_run(world.admin, "DELETE FROM biz_lock");
	}
}

/* The row is that of another hold of the same owner, which the client does not know. */
TX_TEST(committing, with_a_fence_that_was_passed_is_rolled_back)
{
	bizlock *b = holder("k", LONG_MS);

	db_run(world.admin, "UPDATE biz_lock SET fence = fence + 100");
	is_rolled_back_as_lost(b);
}

TX_TEST(committing, without_holding_is_rolled_back)
{
	bizlock *a = holder("k", LONG_MS), *b = client(NULL);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, 1);
		expect(NOT_OWNER, b, bizlock_commit(b, KEY("k"), NULL, tx));
		nothing_is_left_of(tx, 1);
		tx_begin(tx, 2);
		expect(NOT_OWNER, a, bizlock_commit(a, KEY("k"), "task", tx));
		nothing_is_left_of(tx, 2);
		tx_begin(tx, 3);
		expect(NOT_OWNER, a, bizlock_commit(a, KEY("never"), NULL, tx));
		nothing_is_left_of(tx, 3);
	}
	expect(OK, a, bizlock_verify(a, KEY("k"), NULL));
}

/* The table is gone: the server refuses, and says why. */
TX_TEST(committing, that_the_server_refuses_is_rolled_back)
{
	bizlock *b = holder("k", LONG_MS);

	db_run(world.admin, "RENAME TABLE biz_lock TO biz_lock_away");
	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);

		tx_begin(tx, 1);
		expect(SCHEMA, b, bizlock_commit(b, KEY("k"), NULL, tx));
		expect_message(b, "1146");
		expect_message(b, "apply the files of sql/");
		nothing_is_left_of(tx, 1);
	}
	db_run(world.admin, "RENAME TABLE biz_lock_away TO biz_lock");
}

/* Nobody but its own XA COMMIT may commit it: whoever holds the lock, and whoever does not. */
TX_TEST(committing, is_not_for_xa_transactions)
{
	bizlock *b = holder("k", LONG_MS);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_of_form(form);
		int id = form + 1;

		db_run(tx, "XA START '%s'", world.schema);
		db_run(tx, "INSERT INTO ledger VALUES (%d)", id);
		expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
		expect(MISUSE, b, bizlock_commit(b, KEY("k"), NULL, tx));
		expect_message(b, "XA");
		expect(MISUSE, b, bizlock_commit(b, KEY("never"), NULL, tx));
		expect_message(b, "XA");
		cr_assert(!ledger_has(id));
		db_run(tx, "XA END '%s'", world.schema);
		expect(MISUSE, b, bizlock_fence(b, KEY("k"), NULL, tx));
		expect(MISUSE, b, bizlock_commit(b, KEY("k"), NULL, tx));
		expect_message(b, "XA");
		db_run(tx, "XA PREPARE '%s'", world.schema);
		db_run(tx, "XA COMMIT '%s'", world.schema);
		cr_assert(ledger_has(id));
	}
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

/* ---- packets -------------------------------------------------------------------------- */

TX_TEST(committing, is_one_packet_or_two)
{
	struct proxy *p = proxy_start(&world.at, "127.0.0.1");
	bizlock *b = holder("k", LONG_MS);

	for (int form = 0; form < FORMS; form++) {
		MYSQL *tx = tx_through(p, forms[form]);

		for (int id = 1; id <= 3; id++) {
			unsigned before;

			tx_begin(tx, 10 * form + id);
			before = proxy_packets(p);
			expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
			cr_assert_eq(proxy_packets(p) - before, (unsigned)form + 1);
		}
		tx_close(tx);
	}
	proxy_stop(p);
}
