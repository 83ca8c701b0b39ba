/* bizlock_commit() on a connection that breaks, at every packet of both sides and at some bytes
 * inside. The answer says no more than can be known. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_tx.h"

TestSuite(committing_cut, .init = tx_world_begin, .fini = tx_world_end, .timeout = 480);

#define LONG_MS 600000

struct bench {
	struct proxy *p;
	bizlock *b;
	unsigned long flags;
	int id; /* the id of the next row */
	struct fault_trace trace;
	unsigned answered[16];
};

static void begin_bench(struct bench *s, unsigned long flags)
{
	*s = (struct bench){.p = proxy_start(&world.at, "127.0.0.1"), .b = client(NULL)};
	s->flags = flags;
	s->id = flags ? 1000 : 1;
	expect(OK, s->b, acquire(s->b, "k", .lease_ms = LONG_MS));
}

/* Learns which packets are sent when nothing breaks. */
static void look(struct bench *s)
{
	MYSQL *tx = tx_through(s->p, s->flags);

	tx_begin(tx, s->id++);
	proxy_arm(s->p, NULL);
	expect(OK, s->b, bizlock_commit(s->b, KEY("k"), NULL, tx));
	s->trace = proxy_trace(s->p);
	tx_close(tx);
}

static void server_thread_ends(unsigned long thread)
{
	eventually(db_number(world.admin,
	                     "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = %lu",
	                     thread) == 0);
}

/* `last`: the number of the request that carries the COMMIT. If a part of it has arrived, the
 * server may have done it; if all of it has, the server has done it. */
static void judge(struct bench *s, const struct fault *f, unsigned last, size_t size, int rc)
{
	bool sent = f->side == FAULT_REPLIES || f->packet == last;
	bool arrived = f->side == FAULT_REPLIES || f->byte >= size;
	bool visible = ledger_has(s->id);

	s->answered[rc]++;
	cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_UNKNOWN || rc == BIZLOCK_CONN,
	          "side %d, packet %u, byte %zu: %s: %s", f->side, f->packet, f->byte,
	          bizlock_err_name(rc), bizlock_errmsg(s->b));
	cr_assert(rc != BIZLOCK_OK || visible, "OK, and it was not committed");
	cr_assert(rc != BIZLOCK_CONN || !visible, "CONN, and it was committed");
	if (s->flags & CLIENT_MULTI_STATEMENTS && sent && arrived)
		cr_assert(rc == BIZLOCK_OK || rc == BIZLOCK_UNKNOWN, "side %d, packet %u: %s",
		          f->side, f->packet, bizlock_err_name(rc));
	if (rc == BIZLOCK_UNKNOWN)
		cr_assert(sent, "UNKNOWN, and no COMMIT was sent");
}

static void cut_at(struct bench *s, const struct fault *f, unsigned last, size_t size)
{
	MYSQL *tx = tx_through(s->p, s->flags);
	unsigned long thread = mysql_thread_id(tx);
	int rc;

	tx_begin(tx, s->id);
	proxy_arm(s->p, f);
	rc = bizlock_commit(s->b, KEY("k"), NULL, tx);
	cr_assert_eq(proxy_fired(s->p), 1, "side %d, packet %u, byte %zu", f->side, f->packet,
	             f->byte);
	proxy_arm(s->p, NULL);
	server_thread_ends(thread);
	judge(s, f, last, size, rc);
	expect(OK, s->b, bizlock_verify(s->b, KEY("k"), NULL));
	tx_close(tx);
	s->id++;
}

/* Cuts before the packet, in its header, in the middle, and before its last byte. After the last
 * byte of the last reply, a cut would change nothing. */
static void cut_packet(struct bench *s, struct fault f, size_t packet_size, unsigned last,
                       size_t commit_size)
{
	size_t bytes[] = {0, 2, 4, packet_size / 2, packet_size - 1};

	for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
		if (i > 0 && bytes[i] <= bytes[i - 1])
			continue;
		f.byte = bytes[i];
		cut_at(s, &f, last, commit_size);
	}
}

static void cut_everywhere(struct bench *s)
{
	unsigned number[2] = {0, 0}, last = 0;
	size_t commit_size = 0;

	look(s);
	for (unsigned i = 0; i < s->trace.count; i++)
		if (s->trace.packets[i].side == FAULT_REQUESTS) {
			commit_size = s->trace.packets[i].size;
			last += i > 0;
		}
	for (unsigned i = 0; i < s->trace.count; i++) {
		enum fault_side side = s->trace.packets[i].side;
		struct fault f = {.what = FAULT_CUT, .side = side, .packet = number[side]++};

		cut_packet(s, f, s->trace.packets[i].size, last, commit_size);
	}
	cr_assert_gt(s->answered[BIZLOCK_UNKNOWN], 0);
	proxy_stop(s->p);
}

TX_TEST(committing_cut, in_one_packet_is_unknown_when_it_may_have_been_done)
{
	struct bench s;

	begin_bench(&s, CLIENT_MULTI_STATEMENTS);
	cut_everywhere(&s);
	cr_assert_gt(s.answered[BIZLOCK_UNKNOWN], 5);
}

TX_TEST(committing_cut, in_two_packets_is_unknown_when_it_may_have_been_done)
{
	struct bench s;

	begin_bench(&s, 0);
	cut_everywhere(&s);
	cr_assert_gt(s.answered[BIZLOCK_CONN], 0, "before the second nothing can have been done");
}

/* The COMMIT is done, its reply does not come, and the user's own time limit ends the wait. */
static void last_reply_is_swallowed(unsigned long flags)
{
	struct fault f = {.what = FAULT_SWALLOW, .side = FAULT_REPLIES};
	struct bench s;
	MYSQL *tx;

	begin_bench(&s, flags);
	look(&s);
	for (unsigned i = 0; i < s.trace.count; i++)
		f.packet += s.trace.packets[i].side == FAULT_REPLIES;
	f.packet--;
	tx = tx_hasty(s.p, flags);
	tx_begin(tx, s.id);
	proxy_arm(s.p, &f);
	expect(UNKNOWN, s.b, bizlock_commit(s.b, KEY("k"), NULL, tx));
	eventually(ledger_has(s.id));
	proxy_stop(s.p);
	expect(OK, s.b, bizlock_release(s.b, KEY("k"), NULL, NULL));
}

TX_TEST(committing_cut, without_a_reply_is_unknown)
{
	last_reply_is_swallowed(CLIENT_MULTI_STATEMENTS);
	last_reply_is_swallowed(0);
}

/* The server refuses. The cut decides whether the client hears of it. */
static void refused_and_cut(struct bench *s, size_t byte)
{
	struct fault f = {.what = FAULT_CUT, .side = FAULT_REPLIES, .byte = byte};
	MYSQL *tx = tx_through(s->p, s->flags);
	unsigned long thread = mysql_thread_id(tx);
	int rc;

	expect(OK, s->b, acquire_as(s->b, "j", "task"));
	db_run(world.admin, "DELETE FROM biz_lock WHERE %s", row_where(KEY("j")));
	tx_begin(tx, s->id);
	proxy_arm(s->p, &f);
	rc = bizlock_commit(s->b, KEY("j"), "task", tx);
	cr_assert_eq(proxy_fired(s->p), 1);
	cr_assert(rc == BIZLOCK_LOST || rc == BIZLOCK_UNKNOWN || rc == BIZLOCK_CONN, "%s",
	          bizlock_err_name(rc));
	tx_close(tx);
	server_thread_ends(thread);
	cr_assert(!ledger_has(s->id++));
	(void)bizlock_release(s->b, KEY("j"), "task", NULL);
}

TX_TEST(committing_cut, of_a_lost_hold_is_never_seen)
{
	for (int form = 0; form < 2; form++) {
		struct bench s;

		begin_bench(&s, form ? 0 : CLIENT_MULTI_STATEMENTS);
		for (size_t byte = 0; byte < 5; byte++)
			refused_and_cut(&s, byte);
		proxy_stop(s.p);
		expect(OK, s.b, bizlock_release(s.b, KEY("k"), NULL, NULL));
	}
}

/* A connection that was lost before the call takes the transaction with it. */
TX_TEST(committing_cut, after_the_connection_was_lost_is_no_success)
{
	for (int form = 0; form < 2; form++) {
		struct bench s;
		MYSQL *tx;
		int rc;

		begin_bench(&s, form ? 0 : CLIENT_MULTI_STATEMENTS);
		tx = tx_through(s.p, s.flags);
		tx_begin(tx, s.id);
		db_run(world.admin, "KILL %lu", mysql_thread_id(tx));
		server_thread_ends(mysql_thread_id(tx));
		rc = bizlock_commit(s.b, KEY("k"), NULL, tx);
		cr_assert(rc == BIZLOCK_CONN || (rc == BIZLOCK_UNKNOWN && form == 0), "%s",
		          bizlock_err_name(rc));
		cr_assert(!ledger_has(s.id));
		expect(CONN, s.b, bizlock_row_lock(s.b, KEY("k"), tx, 0));
		proxy_stop(s.p);
		expect(OK, s.b, bizlock_release(s.b, KEY("k"), NULL, NULL));
	}
}
