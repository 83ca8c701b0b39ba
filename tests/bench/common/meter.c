#define _GNU_SOURCE 1
#include "meter.h"

#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "patience.h"

int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void sleep_until(int64_t ns)
{
	struct timespec t = {ns / 1000000000, ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0)
		;
}

pid_t meter_fork(void)
{
	pid_t pid = fork();

	if (pid < 0)
		die("no process");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static int64_t ms_of(struct timeval t)
{
	return (int64_t)t.tv_sec * 1000 + t.tv_usec / 1000;
}

int64_t own_cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return ms_of(usage.ru_utime) + ms_of(usage.ru_stime);
}

/* The 14th and 15th field; the second, a name in parentheses, may hold anything. */
int64_t server_cpu_ms(void)
{
	const char *pid = getenv("BIZLOCK_BENCH_SERVER_PID");
	unsigned long user, system;
	char path[64], line[1024];
	const char *rest = NULL;
	FILE *in;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid ? pid : "");
	in = fopen(path, "r");
	if (in && fgets(line, sizeof(line), in))
		rest = strrchr(line, ')');
	if (in)
		fclose(in);
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
	                    &system) != 2)
		return -1;
	return (int64_t)(user + system) * 1000 / sysconf(_SC_CLK_TCK);
}

int64_t child_cpu_ms(pid_t pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &t) != 0)
		return -1;
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#define SOCKETS_MAX 512

/* The inodes of the sockets of a process. */
static unsigned sockets_of(pid_t pid, unsigned long *ret)
{
	struct dirent *entry;
	char path[64], to[64];
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && n < SOCKETS_MAX && (entry = readdir(dir)) != NULL) {
		ssize_t length = readlinkat(dirfd(dir), entry->d_name, to, sizeof(to) - 1);

		to[length > 0 ? length : 0] = '\0';
		if (sscanf(to, "socket:[%lu]", &ret[n]) == 1)
			n++;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Takes it out of the list. */
static bool take_out(unsigned long *sockets, unsigned *n, unsigned long socket)
{
	for (unsigned i = 0; i < *n; i++)
		if (sockets[i] == socket) {
			sockets[i] = sockets[--*n];
			return true;
		}
	return false;
}

/* The third column is the other end, the fourth the state (1: established), the tenth the inode.
 * While others connect, the kernel may show a line twice. */
unsigned connections_of(pid_t pid, unsigned port)
{
	unsigned long sockets[SOCKETS_MAX], own[SOCKETS_MAX], inode;
	unsigned n = sockets_of(pid, sockets), ours = sockets_of(getpid(), own);
	unsigned ret = 0, other, state;
	FILE *in = fopen("/proc/net/tcp", "r");
	char line[256];

	while (ours-- > 0)
		take_out(sockets, &n, own[ours]);
	while (in && fgets(line, sizeof(line), in))
		if (sscanf(line, "%*s %*s %*[0-9A-F]:%x %x %*s %*s %*s %*s %*s %lu", &other, &state,
		           &inode) == 3 &&
		    other == port && state == 1)
			ret += take_out(sockets, &n, inode);
	if (in)
		fclose(in);
	return ret;
}
