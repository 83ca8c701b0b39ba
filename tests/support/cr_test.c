#define _GNU_SOURCE 1
#include "cr_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#define CLIENTS_MAX 8
#define TEXTS_MAX 32

struct world world;

static bizlock *clients[CLIENTS_MAX];
static char *texts[TEXTS_MAX];
static unsigned text_count;

void world_begin_empty(void)
{
	struct server at = server_from_env();

	world_make(&world, &at);
}

void world_begin(void)
{
	world_begin_empty();
	world_migrate(&world);
}

/* An assertion that fails in a function which bizlock_dispatch() has called leaves that call for
 * ever, and a close waits for it: SIGALRM ends the test, which has failed. */
void world_end(void)
{
	calls_abandon();
	alarm(2 * PATIENCE_MS / 1000);
	for (int i = 0; i < CLIENTS_MAX; i++)
		bizlock_close(clients[i]);
	alarm(0);
	while (text_count > 0)
		free(texts[--text_count]);
	world_drop(&world);
}

static bizlock *keep(bizlock *b)
{
	int i = 0;

	while (i < CLIENTS_MAX && clients[i])
		i++;
	if (i == CLIENTS_MAX)
		die("too many clients");
	return clients[i] = b;
}

bizlock *client(const char *const *options)
{
	return keep(client_open(&world, options));
}

bizlock *client_through(const struct proxy *p, const char *const *options)
{
	struct server at = proxy_address(p);
	struct world detour = world_by_way_of(&world, &at);

	return keep(client_open(&detour, options));
}

/* The new version has as many digits as the true one: 10.11 becomes 10.05. */
const char *seem_older(struct proxy *p, const char *mysql, const char *mariadb)
{
	static char from[16], to[16];
	const char *now = mysql_get_server_info(world.admin);
	const char *old = server_is_mysql(world.admin) ? mysql : mariadb;
	size_t major = strcspn(now, "."), len = major + 1 + strspn(now + major + 1, "0123456789");
	size_t digits = strlen(old) - major - 1, room = len - major - 1;

	cr_assert(old[major] == '.' && digits <= room && len < sizeof(from), "%s: %s", now, old);
	snprintf(from, sizeof(from), "%.*s", (int)len, now);
	snprintf(to, sizeof(to), "%.*s%.*s%s", (int)major + 1, old, (int)(room - digits), "0000",
	         old + major + 1);
	proxy_replace(p, from, to);
	return to;
}

struct task {
	void (*fn)(void *arg);
	void *arg;
};

static void *run_task(void *arg)
{
	const struct task *task = arg;

	task->fn(task->arg);
	return NULL;
}

void in_another_thread(void (*fn)(void *arg), void *arg)
{
	struct task task = {fn, arg};
	pthread_t thread;

	if (pthread_create(&thread, NULL, run_task, &task) != 0)
		die("no thread");
	pthread_join(thread, NULL);
}

const char *row_text(const char *id)
{
	if (text_count == TEXTS_MAX)
		die("too many texts");
	return texts[text_count++] =
	               db_text(world.admin, "SELECT * FROM biz_lock WHERE %s", row_where(KEY(id)));
}

bool skips_fail(void)
{
	const char *value = getenv("BIZLOCK_SKIPS_FAIL");

	return value && strcmp(value, "1") == 0;
}

int acquire_with(bizlock *b, uint32_t flags, struct acquire_args args)
{
	bizlock_acquire_opts opts = OPTS(.wait_ms = args.wait_ms, .lease_ms = args.lease_ms,
	                                 .flags = flags, .owner = args.owner);

	return bizlock_acquire(b, KEY(args.id), &opts, args.grant);
}

void works(bizlock *b)
{
	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, NULL));
}

int64_t round_ms(bizlock *b)
{
	int64_t start = now_ms();

	expect(OK, b, acquire_as(b, "measured", "measures"));
	expect(OK, b, bizlock_release(b, KEY("measured"), "measures", NULL));
	return now_ms() - start;
}

uint32_t busy_lease_ms(bizlock *b, uint32_t quiet_ms)
{
	for (int i = 0; i < 10; i++)
		quiet_ms += (uint32_t)round_ms(b);
	return quiet_ms;
}

void takeovers_in_turn(bizlock *const *b, int n)
{
	/* Answered later than its lease, the first acquisition would take its own row over. */
	uint32_t lease_ms = busy_lease_ms(b[0], 100);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = 0;
	char owner[16];

	for (int i = 0; i < 30; i++) {
		snprintf(owner, sizeof(owner), "task-%d",
		         i); /* a lost hold is not acquired again */
		expect(OK, b[i % n],
		       acquire(b[i % n], "in turn", .wait_ms = PATIENCE_MS, .lease_ms = lease_ms,
		               .owner = owner, .grant = &grant));
		cr_assert_eq(grant.flags, i ? BIZLOCK_TOOK_OVER : 0);
		cr_assert_gt(grant.fence, fence, "round %d", i);
		fence = grant.fence;
	}
}

int try_open(const struct world *w, const char *const *options, char text[512])
{
	bizlock *b = client_new(w, options);
	int rc = bizlock_open(b);

	snprintf(text, 512, "%s", rc == BIZLOCK_OK ? "" : bizlock_errmsg(b));
	bizlock_close(b);
	return rc;
}

void write_file(char path[32], const char *text)
{
	FILE *out;
	int fd;

	snprintf(path, 32, "/tmp/bizlock-test-XXXXXX");
	fd = mkstemp(path);
	out = fd < 0 ? NULL : fdopen(fd, "w");
	if (!out || fputs(text, out) < 0 || fclose(out) != 0)
		die("cannot write %s", path);
}

void kill_connections(void)
{
	world_kill_connections(&world);
}

void lease_is_over(const char *id)
{
	eventually(row_of(&world, KEY(id)).left_us <= 0);
}

long long server_us(void)
{
	return db_number(world.admin,
	                 "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))");
}

static long long moment_us(const char *id, const char *column)
{
	return db_number(world.admin,
	                 "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s) FROM biz_lock"
	                 " WHERE %s",
	                 column, row_where(KEY(id)));
}

long long began_us(const char *id)
{
	return moment_us(id, "gmt_create");
}

long long modified_us(const char *id)
{
	return moment_us(id, "gmt_modified");
}

/* ---- tests that cause deadlocks, and tests that count them --------------- */

/* All tests have one file in common, their program: so that is what they lock. */
static void take_turns(int how)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || flock(fd, how) != 0)
		die("cannot lock /proc/self/exe");
}

void deadlocks_may_happen(void)
{
	take_turns(LOCK_SH);
}

void deadlocks_are_counted(void)
{
	take_turns(LOCK_EX);
}
