/* Connecting to several hosts, each by a thread of its own. */
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cr_test.h"
#include "mute.h"
#include "stacks.h"

TestSuite(dials, .init = world_begin, .fini = world_end, .timeout = 240);

#define LONG "600000" /* for timeouts that a test would never wait for */
#define MUTES 4

static unsigned good_port(void)
{
	skip_unless(world.at.port && strcmp(world.at.host, "127.0.0.1") == 0,
	            "the server has no port on this machine");
	return world.at.port;
}

/* A client of several silent hosts and then a good one. */
static bizlock *client_behind_mutes(struct mute *m, int n, const char *connect_timeout_ms)
{
	bizlock *b;
	char hosts[256];
	int len = 0;

	for (int i = 0; i < n; i++) {
		m[i] = mute_start();
		len += snprintf(hosts + len, sizeof(hosts) - (size_t)len, "127.0.0.1:%u,",
		                m[i].port);
	}
	snprintf(hosts + len, sizeof(hosts) - (size_t)len, "127.0.0.1:%u", good_port());
	b = client_new(&world, OPTIONS("host", hosts, "connect_timeout_ms", connect_timeout_ms));
	eventually(bizlock_open(b) == BIZLOCK_OK); /* a busy machine may be slower than that */
	return b;
}

/* The time ends before the last of them would be tried, a moment after each other. */
Test(dials, all_are_tried_however_short_the_timeout)
{
	struct mute m[MUTES];
	bizlock *b = client_behind_mutes(m, MUTES, "100");

	works(b);
	for (int i = 0; i < MUTES; i++)
		cr_assert_geq(mute_stop(&m[i]), 1, "host %d was not tried", i);
	bizlock_close(b);
}

/* The dial to the first host is under way in the parent, and nowhere in the child. */
Test(dials, a_forked_child_waits_for_none)
{
	struct mute m;
	bizlock *b = client_behind_mutes(&m, 1, LONG);
	int status = -1;
	pid_t child = fork();

	cr_assert_geq(child, 0);
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		bizlock_close(b);
		_exit(0);
	}
	eventually(waitpid(child, &status, WNOHANG) == child);
	cr_assert_eq(status, 0);
	works(b);
	mute_stop(&m);
	bizlock_close(b);
}

Test(dials, where_no_thread_can_be_had_each_host_is_tried_in_turn)
{
	struct proxy *p;
	char hosts[64];
	bizlock *b;

	good_port();
	p = proxy_start(&world.at, "127.0.0.1");
	snprintf(hosts, sizeof(hosts), "127.0.0.1:%u,127.0.0.1:%u", proxy_address(p).port,
	         good_port());
	b = client(OPTIONS("host", hosts, "ssl_mode", "disabled", "connect_timeout_ms", "1000"));
	works(b);
	stacks_refuse_threads();
	proxy_hold_replies(p, true);
	proxy_cut(p);
	expect(OK, b, acquire(b, "k", .wait_ms = PATIENCE_MS));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
	proxy_stop(p);
}
