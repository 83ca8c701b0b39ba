#define _GNU_SOURCE 1
#include "cr_between.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "dial.h"

/* ---- starting and ending ------------------------------------------------------------------- */

static bool is_installed(const char *program)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", program);
	return system(command) == 0;
}

/* Debian has it where users that are not root do not look. */
static void extend_path(void)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s:/usr/sbin:/sbin", getenv("PATH"));
	setenv("PATH", path, 1);
}

void need_haproxy(void)
{
	extend_path();
	skip_unless(is_installed("haproxy"), "haproxy is not installed");
}

void need_router(void)
{
	extend_path();
	not_here_unless(is_installed("mysqlrouter"), "this distribution has no MySQL Router");
}

static unsigned free_port(void)
{
	unsigned port;

	close(listen_on("127.0.0.1", &port));
	return port;
}

static FILE *begin_config(struct between *x, const struct server *upstream, char path[96])
{
	FILE *out;

	*x = (struct between){.dir = "/tmp/bizlock-between-XXXXXX"};
	if (!mkdtemp(x->dir))
		die("mkdtemp failed");
	x->at = server_over_tcp(*upstream, "127.0.0.1", free_port());
	snprintf(path, 96, "%s/config", x->dir);
	out = fopen(path, "w");
	if (!out)
		die("no file %s", path);
	return out;
}

static bool answers(const struct between *x)
{
	int fd = dial(&x->at);

	if (fd < 0 && waitpid(x->pid, NULL, WNOHANG) == x->pid)
		die("the proxy of %s has ended", x->dir);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void run(struct between *x, const char *const *command)
{
	x->pid = fork();
	if (x->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execvp(command[0], (char *const *)command);
		_exit(127);
	}
	if (x->pid < 0)
		die("fork failed");
	eventually(answers(x));
}

void haproxy_start(struct between *x, const struct server *servers, unsigned n, const char *balance,
                   const char *idle)
{
	char path[96];
	FILE *out = begin_config(x, servers, path);
	bool first = strcmp(balance, "first") == 0;

	fprintf(out,
	        "defaults\n\tmode tcp\n\ttimeout connect 2s\n"
	        "\ttimeout client %s\n\ttimeout server %s\n"
	        "listen mysql\n\tbind 127.0.0.1:%u\n\tbalance %s\n"
	        "\tdefault-server inter 200ms fall 2 rise 2 on-marked-down shutdown-sessions\n",
	        idle, idle, x->at.port, balance);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "\tserver db%u %s:%u check%s\n", i + 1, servers[i].host,
		        servers[i].port, first && i > 0 ? " backup" : "");
	fclose(out);
	run(x, OPTIONS("haproxy", "-q", "-db", "-f", path));
}

void router_start(struct between *x, const struct server *servers, unsigned n, const char *strategy,
                  const char *more)
{
	char path[96];
	FILE *out = begin_config(x, servers, path);

	fprintf(out,
	        "[DEFAULT]\nlogging_folder=\n[logger]\nlevel=WARNING\n"
	        "[connection_pool]\nmax_idle_server_connections=32\n"
	        "[routing:bizlock]\nbind_address=127.0.0.1\nbind_port=%u\nprotocol=classic\n"
	        "routing_strategy=%s\n%s\ndestinations=",
	        x->at.port, strategy, more);
	for (unsigned i = 0; i < n; i++)
		fprintf(out, "%s%s:%u", i ? "," : "", servers[i].host, servers[i].port);
	fprintf(out, "\n");
	fclose(out);
	run(x, OPTIONS("mysqlrouter", "-c", path));
}

void between_end(struct between *x)
{
	char command[128];

	if (!x->pid)
		return;
	kill(x->pid, SIGKILL);
	waitpid(x->pid, NULL, 0);
	snprintf(command, sizeof(command), "rm -rf '%s'", x->dir);
	if (system(command) != 0)
		die("failed: %s", command);
	x->pid = 0;
}

struct world world_behind(const struct between *x)
{
	return world_by_way_of(&world, &x->at);
}

bizlock *client_behind(const struct between *x, const char *const *options)
{
	struct world w = world_behind(x);
	bizlock *b = client_new(&w, options);

	expect(OK, b, bizlock_open(b));
	return b;
}
