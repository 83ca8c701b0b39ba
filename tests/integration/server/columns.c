/* A server, or something on the way to it, answers with other columns than were asked for, or asks
 * for other parameters than the statement has. */
#define _GNU_SOURCE 1
#include "cr_test.h"

TestSuite(columns, .init = world_begin, .fini = world_end, .timeout = 240);

#define NOTHING "never sent", "whatever, " /* is changed on the way */

static int never(void *arg, const bizlock_info *info)
{
	(void)arg;
	(void)info;
	cr_assert_fail("shown");
	return 1;
}

/* A stranger holds "k", and the client's statements are changed on the way. */
static bizlock *client_misled(struct proxy **ret, const char *from, const char *to)
{
	bizlock *stranger = client(NULL), *b;

	expect(OK, stranger, acquire(stranger, "k", .lease_ms = 60000));
	*ret = proxy_start(&world.at, "127.0.0.1");
	b = client_through(*ret, NULL);
	proxy_replace(*ret, from, to);
	return b;
}

static void works_again(bizlock *b, struct proxy *p)
{
	proxy_replace(p, NOTHING);
	expect(OK, b, acquire_as(b, "another", "task-1"));
	expect(BUSY, b, acquire_as(b, "k", "task-1"));
	proxy_stop(p);
}

Test(columns, more_than_were_asked_for_are_refused)
{
	struct proxy *p;
	bizlock *b = client_misled(&p, "l.taken_from", "l.bell, 1, 2");

	expect(DB, b, acquire_as(b, "k", "task-1"));
	expect_message(b, "9 columns where 7 are asked for");
	works_again(b, p);
}

Test(columns, fewer_than_were_asked_for_are_refused)
{
	struct proxy *p;
	bizlock *b =
	        client_misled(&p, "biz_id, biz_type, owner, note", "biz_id, biz_type, owner/* */ ");

	expect(DB, b, bizlock_each(b, NULL, never, NULL));
	expect_message(b, "9 columns where 10 are asked for");
	works_again(b, p);
}

Test(columns, parameters_that_are_not_asked_for_are_refused)
{
	struct proxy *p;
	bizlock *b = client_misled(&p, NOTHING);

	expect(OK, b, acquire_as(b, "mine", "task-1")); /* draws its fence again where it is slow */
	expect(OK, b, acquire_as(b, "mine", "task-1")); /* the next one is prepared */
	proxy_replace(p, "owner = ? AND fence", "owner = 1 AND fence");
	expect(DB, b, acquire_as(b, "mine", "task-1"));
	expect_message(b, "6 parameters where 7 are asked for");
	works_again(b, p);
}
