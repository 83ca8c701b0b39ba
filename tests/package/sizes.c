/* Every struct that begins with its size, by a program and a library that may know different sizes
 * of it. `grown`, where this program has it, is a member that a later version has added to each
 * struct: a library that does not know it leaves it zero. Prints the sizes that the library has
 * told. */
#include <bizlock_async.h>
#include <bizlock_ops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 64

#ifdef GROWN
#define IS_ZERO(s) ((s).grown[0] == 0 && (s).grown[1] == 0)
#else
#define IS_ZERO(s) 1
#endif

static bizlock *lock;

#define MUST(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			printf("%d: %s: %s\n", __LINE__, #what, bizlock_errmsg(lock));             \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* A struct that the library fills, with bytes behind it that the library must not touch. */
#define GUARDED(type)                                                                              \
	struct {                                                                                   \
		type it;                                                                           \
		unsigned char behind[GUARD];                                                       \
	}
#define FILL(g)                                                                                    \
	do {                                                                                       \
		memset(&(g), 0xa5, sizeof(g));                                                     \
		(g).it.size = sizeof((g).it);                                                      \
	} while (0)
#define FILLED(g) (IS_ZERO((g).it) && (g).it.size == sizeof((g).it) && is_untouched((g).behind))

static int is_untouched(const unsigned char *behind)
{
	for (int i = 0; i < GUARD; i++)
		if (behind[i] != 0xa5)
			return 0;
	return 1;
}

static void tell(const char *name, size_t size)
{
	printf("%s %zu\n", name, size);
}

static int see_info(void *arg, const bizlock_info *info)
{
	(void)arg;
	tell("info", info->size);
	return strcmp(info->note, "why") != 0 || info->fence == 0;
}

static int see_run(void *arg, const bizlock_run *run)
{
	(void)arg;
	tell("run", run->size);
	return run->outcome != BIZLOCK_RUN_DONE;
}

static int see_finding(void *arg, const bizlock_finding *finding)
{
	if (!*(int *)arg)
		tell("finding", finding->size);
	*(int *)arg = 1;
	return finding->name[0] == '\0';
}

static int see_migration(void *arg, const bizlock_migration *migration)
{
	if (!*(int *)arg)
		tell("migration", migration->size);
	*(int *)arg = 1;
	return migration->version == 0;
}

static int see_progress(void *arg, const bizlock_reap_result *so_far)
{
	*(size_t *)arg = so_far->size;
	return 0;
}

static void see_result(void *arg, const bizlock_result *result)
{
	tell("result", result->size);
	*(int *)arg = result->rc == BIZLOCK_OK && result->grant->fence > 0;
}

static void hold_locks(void)
{
	bizlock_key keys[] = {{"order", "1"}, {"order", "2"}};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	GUARDED(bizlock_grant) one;
	struct {
		bizlock_grant it[2];
		unsigned char behind[GUARD];
	} two;

	opts.note = "why";
	opts.wait_ms = 0;
	FILL(one);
	MUST(bizlock_acquire(lock, keys[0], &opts, &one.it) == BIZLOCK_OK);
	MUST(FILLED(one) && one.it.fence > 0 && one.it.depth == 1);
	memset(&two, 0xa5, sizeof(two));
	two.it[0].size = sizeof(two.it[0]);
	MUST(bizlock_acquire_all(lock, keys, 2, &opts, two.it) == BIZLOCK_OK);
	MUST(two.it[0].depth == 2 && two.it[1].depth == 1 && is_untouched(two.behind));
	MUST(IS_ZERO(two.it[0]) && IS_ZERO(two.it[1]) && two.it[1].size == sizeof(two.it[1]));
	MUST(bizlock_each(lock, "order", see_info, NULL) == BIZLOCK_OK);
	MUST(bizlock_release_all(lock, keys, 2, NULL) == BIZLOCK_OK);
	FILL(one);
	MUST(bizlock_held(lock, keys[0], NULL, &one.it) == BIZLOCK_OK && FILLED(one));
	MUST(bizlock_release(lock, keys[0], NULL, NULL) == BIZLOCK_OK);
}

static void record_run(void)
{
	bizlock_run_result result = BIZLOCK_RUN_RESULT_INIT;
	bizlock_key key = {"job", "1"};

	result.outcome = BIZLOCK_RUN_DONE;
	MUST(bizlock_acquire(lock, key, NULL, NULL) == BIZLOCK_OK);
	MUST(bizlock_run_begin(lock, key, NULL) == BIZLOCK_OK);
	MUST(bizlock_run_end(lock, key, NULL, &result) == BIZLOCK_OK);
	MUST(bizlock_release(lock, key, NULL, NULL) == BIZLOCK_OK);
	MUST(bizlock_each_run(lock, "job", "1", see_run, NULL) == BIZLOCK_OK);
}

static void look_after_tables(void)
{
	bizlock_reap_opts opts = BIZLOCK_REAP_OPTS_INIT;
	GUARDED(bizlock_reap_result) reaped;
	GUARDED(bizlock_numbers) numbers;
	size_t progress = 0;
	int seen = 0;

	opts.progress = see_progress;
	opts.arg = &progress;
	FILL(reaped);
	MUST(bizlock_reap(lock, &opts, &reaped.it) == BIZLOCK_OK && FILLED(reaped));
	tell("progress", progress);
	FILL(numbers);
	MUST(bizlock_stats(lock, &numbers.it) == BIZLOCK_OK && FILLED(numbers));
	MUST(numbers.it.acquired >= 3);
	MUST(bizlock_doctor(lock, see_finding, &seen) == BIZLOCK_OK);
	seen = 0;
	MUST(bizlock_each_migration(lock, see_migration, &seen) == BIZLOCK_OK);
}

static void ask_by_request(void)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_key key = {"order", "3"};
	uint64_t request;
	int good = 0;

	opts.owner = "task";
	MUST(bizlock_fd(lock) >= 0);
	MUST(bizlock_acquire_start(lock, key, &opts, see_result, &good, &request) == BIZLOCK_OK);
	while (!good)
		MUST(bizlock_dispatch(lock, NULL) == BIZLOCK_OK);
	MUST(bizlock_release(lock, key, "task", NULL) == BIZLOCK_OK);
}

/* A member that the library does not know must not be asked for. */
static void refuse_unknown(void)
{
#ifdef GROWN
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	opts.grown[1] = 1;
	MUST(bizlock_acquire(lock, (bizlock_key){"order", "4"}, &opts, NULL) == BIZLOCK_INVALID);
#endif
}

int main(void)
{
	MUST(bizlock_new(&lock) == BIZLOCK_OK);
	MUST(bizlock_migrate(lock) == BIZLOCK_OK);
	MUST(bizlock_open(lock) == BIZLOCK_OK);
	hold_locks();
	record_run();
	look_after_tables();
	ask_by_request();
	refuse_unknown();
	return bizlock_close(lock) != BIZLOCK_OK;
}
