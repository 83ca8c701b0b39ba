/* A report that many read and one rebuilds. Readers share the lock, so they do not wait for each
 * other. The process that rebuilds has the lock alone, so no reader sees half a report.
 *
 *     readers FILE [READERS [REBUILDS]]
 *
 * Starts so many processes that read FILE all the time (8), and rebuilds it so many times (20).
 * Where the server is comes from the environment and the option files, as with hello. */
#define _POSIX_C_SOURCE 200809L
#include <bizlock.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define LINES 1000

static const bizlock_key report = {"report", "daily"};

static void fail(bizlock *lock, int rc, const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", what, bizlock_err_name(rc), bizlock_errmsg(lock));
	_exit(1);
}

static bizlock *open_client(void)
{
	bizlock *lock = NULL;
	int rc = bizlock_new(&lock);

	if (rc == BIZLOCK_OK)
		rc = bizlock_open(lock);
	if (rc != BIZLOCK_OK)
		fail(lock, rc, "open");
	return lock;
}

/* A report is whole if all of its lines are of the same edition. */
static int is_whole(const char *path)
{
	FILE *in = fopen(path, "r");
	unsigned edition, first = 0, lines = 0;

	if (!in)
		return 0;
	while (fscanf(in, "edition %u\n", &edition) == 1) {
		first = lines++ ? first : edition;
		if (edition != first)
			lines = LINES + 1;
	}
	fclose(in);
	return lines == LINES;
}

static void read_always(const char *path, int until)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock *lock = open_client();
	char end;

	opts.flags = BIZLOCK_SHARED;
	while (read(until, &end, 1) != 0) { /* it does not block; 0: the writer has ended */
		int rc = bizlock_acquire(lock, report, &opts, NULL);

		if (rc != BIZLOCK_OK)
			fail(lock, rc, "read");
		if (!is_whole(path)) {
			fprintf(stderr, "half a report\n");
			_exit(1);
		}
		rc = bizlock_release(lock, report, NULL, NULL);
		if (rc != BIZLOCK_OK)
			fail(lock, rc, "read");
	}
	bizlock_close(lock);
}

static void rebuild(bizlock *lock, const char *path, unsigned edition)
{
	int rc = bizlock_acquire(lock, report, NULL, NULL); /* not shared */
	int written;
	FILE *out;

	if (rc != BIZLOCK_OK)
		fail(lock, rc, "rebuild");
	out = fopen(path, "w");
	for (int i = 0; out && i < LINES; i++)
		fprintf(out, "edition %u\n", edition);
	written = out && !ferror(out);
	if (out && fclose(out) != 0)
		written = 0;
	if (!written)
		perror(path);
	rc = bizlock_release(lock, report, NULL, NULL);
	if (rc != BIZLOCK_OK)
		fail(lock, rc, "rebuild");
	if (!written)
		_exit(1);
}

int main(int argc, char **argv)
{
	int readers = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 8, status, bad = 0, ends[2];
	unsigned rebuilds = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 20;
	bizlock *lock;

	if (argc < 2 || readers < 1 || pipe(ends) != 0 ||
	    fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
		fprintf(stderr, "usage: readers FILE [READERS [REBUILDS]]\n");
		return 64;
	}
	lock = open_client();
	rebuild(lock, argv[1], 0);
	bizlock_close(lock); /* a client does not survive fork() */
	for (int i = 0; i < readers; i++)
		if (fork() == 0) {
			close(ends[1]);
			read_always(argv[1], ends[0]);
			_exit(0);
		}
	lock = open_client();
	for (unsigned i = 1; i <= rebuilds; i++)
		rebuild(lock, argv[1], i);
	bizlock_close(lock);
	close(ends[1]);
	while (wait(&status) > 0)
		bad |= status != 0;
	printf("%d readers, %u rebuilds: %s\n", readers, rebuilds,
	       bad ? "something went wrong" : "each report was whole");
	return bad;
}
