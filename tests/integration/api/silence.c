/* The library writes nothing to its user's stdout and stderr, and leaves signals alone. */
#define _GNU_SOURCE 1
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "cr_tx.h"

TestSuite(silence, .init = tx_world_begin, .fini = tx_world_end, .timeout = 240);

/* ---- what is written ------------------------------------------------------------ */

static struct {
	int before[2], file;
	char path[32];
} heard;

static void listen_to_all(void)
{
	snprintf(heard.path, sizeof(heard.path), "/tmp/bizlock-heard-XXXXXX");
	heard.file = mkstemp(heard.path);
	cr_assert_geq(heard.file, 0);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		heard.before[i] = dup(i + 1);
		cr_assert_eq(dup2(heard.file, i + 1), i + 1);
	}
}

static void nothing_was_heard(void)
{
	char text[512];
	ssize_t n;

	fflush(NULL);
	for (int i = 0; i < 2; i++)
		dup2(heard.before[i], i + 1);
	n = pread(heard.file, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	unlink(heard.path);
	cr_assert_eq(n, 0, "%s", text);
}

/* ---- all that there is to do ----------------------------------------------------- */

static int see_finding(void *arg, const bizlock_finding *f)
{
	(void)arg;
	(void)f;
	return 0;
}

static void use_transactions(bizlock *b)
{
	MYSQL *tx = tx_new();

	expect(OK, b, bizlock_row_lock(b, KEY("r"), tx, 0));
	expect(OK, b, bizlock_fence(b, KEY("k"), NULL, tx));
	expect(OK, b, bizlock_commit(b, KEY("k"), NULL, tx));
	tx_close(tx);
}

static void contend(bizlock *b, bizlock *other)
{
	struct call call;

	expect(BUSY, other, acquire(other, "k"));
	expect(TIMEOUT, other, acquire(other, "k", .wait_ms = 50));
	call_start(&call, other, "k", .wait_ms = PATIENCE_MS, .owner = "task");
	eventually(doorbell_waiters(&world) == 1);
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	cr_assert_eq(call_join(&call), BIZLOCK_OK, "%s", call.errmsg);
	expect(OK, other, bizlock_break(other, KEY("k"), call.grant.fence));
	expect(LOST, other, bizlock_release(other, KEY("k"), "task", NULL));
}

static void use_everything(const struct world *w)
{
	bizlock *b = client_open(w, NULL), *other = client_open(w, OPTIONS("queue", "auto"));
	struct keyset s;

	keyset_make(&s, 3, "s");
	expect(OK, b, acquire_renewed(b, "k"));
	expect(OK, b, acquire_renewed(b, "k"));
	expect(OK, b, bizlock_renew(b, KEY("k"), NULL, 0));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	expect(OK, b, keyset_acquire(b, &s));
	expect(OK, b, keyset_release(b, &s, NULL));
	use_transactions(b);
	contend(b, other);
	kill_connections();
	works(b);
	expect(OK, b, bizlock_doctor(b, see_finding, NULL));
	bizlock_close(other);
	bizlock_close(b);
}

Test(silence, nothing_is_written)
{
	listen_to_all();
	use_everything(&world);
	nothing_was_heard();
}

/* With TLS, where there is any. */
Test(silence, nothing_is_written_over_a_network)
{
	struct server tcp = server_over_tcp(world.at, world.at.host, world.at.port);
	struct world w = world_by_way_of(&world, &tcp);

	skip_unless(world.at.port, "the server is reached by a socket alone");
	listen_to_all();
	use_everything(&w);
	nothing_was_heard();
}

/* ---- signals ----------------------------------------------------------------------- */

static void ignore_it(int number)
{
	(void)number;
}

/* The connector has changed SIGPIPE already, when the test's own connection was opened. */
Test(silence, signals_are_left_alone)
{
	struct sigaction before[NSIG], now, mine = {.sa_handler = ignore_it};
	sigset_t mask, mask_now;

	sigaction(SIGPIPE, &mine, NULL);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	use_everything(&world);
	pthread_sigmask(SIG_SETMASK, NULL, &mask_now);
	for (int i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &now) == 0)
			cr_assert_eq(now.sa_handler, before[i].sa_handler, "signal %d", i);
		cr_assert_eq(sigismember(&mask, i), sigismember(&mask_now, i), "signal %d", i);
	}
}
