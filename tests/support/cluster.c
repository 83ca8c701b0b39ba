#define _GNU_SOURCE 1
#include "cluster.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "own_server.h"
#include "patience.h"

/* Beside server.sh. */
static void script(char *ret, size_t size)
{
	const char *server = getenv("BIZLOCK_SERVER_SH"), *slash = strrchr(server, '/');

	snprintf(ret, size, "%.*scluster.sh", slash ? (int)(slash + 1 - server) : 0, server);
}

static bool shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static bool shell(const char *fmt, ...)
{
	char path[512], command[2048];
	int n;
	va_list args;

	script(path, sizeof(path));
	n = snprintf(command, sizeof(command), "bash '%s' ", path);
	va_start(args, fmt);
	vsnprintf(command + n, sizeof(command) - (size_t)n, fmt, args);
	va_end(args);
	return system(command) == 0;
}

bool cluster_possible(void)
{
	return own_server_possible() && shell("kind >/dev/null");
}

bool cluster_is_group(void)
{
	return shell("kind | grep -qx group");
}

bool cluster_set_apart(void)
{
	return system("PATH=$PATH:/sbin:/usr/sbin; command -v ip mount nsenter >/dev/null") == 0 &&
	       unshare(CLONE_NEWNET | CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* The line of each node: number, host, port, socket. */
static void read_nodes(struct cluster *c)
{
	char path[300], host[128];
	unsigned number, port;
	FILE *in;

	snprintf(path, sizeof(path), "%s/nodes", c->dir);
	in = fopen(path, "r");
	for (unsigned i = 0; i < CLUSTER_NODES; i++) {
		if (!in || fscanf(in, "%u %127s %u %*s", &number, host, &port) != 3)
			die("cannot read %s", path);
		snprintf(path, sizeof(path), "%s/%u", c->dir, number);
		c->nodes[i] = own_server_address(path);
		snprintf(c->nodes[i].host, sizeof(c->nodes[i].host), "%s", host);
		c->nodes[i].port = port;
	}
	fclose(in);
}

void cluster_start(struct cluster *c, const char *args)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(c->dir, sizeof(c->dir), "%.100s/bizlock-cluster-%d", tmp ? tmp : "/tmp",
	         (int)getpid());
	if (!shell("start '%s' --owner %d %s >&2", c->dir, (int)getpid(), args))
		die("the cluster did not start");
	c->is_group = cluster_is_group();
	c->is_apart = strstr(args, "--apart") != NULL;
	c->has_one_primary = c->is_group && !strstr(args, "--several");
	read_nodes(c);
}

bool cluster_do(const struct cluster *c, const char *what, unsigned node)
{
	return shell("%s '%s' %u >&2", what, c->dir, node + 1);
}

int cluster_primary(const struct cluster *c)
{
	char path[512], command[1024], line[256], role[32];
	int primary = -1, number;
	FILE *in;

	script(path, sizeof(path));
	snprintf(command, sizeof(command), "bash '%s' state '%s'", path, c->dir);
	in = popen(command, "r");
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "%d ONLINE %31s", &number, role) == 2 &&
		    strcmp(role, "PRIMARY") == 0)
			primary = number - 1;
	if (!in || pclose(in) != 0)
		die("failed: %s", command);
	return primary;
}

void cluster_show(const struct cluster *c)
{
	shell("state '%s' >&2; tail -n 20 '%s'/[1-3]/error.log >&2", c->dir, c->dir);
}

void cluster_end(struct cluster *c)
{
	if (!c->dir[0])
		return;
	if (!shell("stop '%s' >&2", c->dir))
		die("the cluster does not end");
	c->dir[0] = '\0';
}
