#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/trace.h"

#define MANY (3 * BL_TRACE_LINES)
#define THREADS 4

TestSuite(trace_lines, .timeout = 120);

/* What was told, and a gate that holds the function up while it is closed. */
static struct told {
	pthread_mutex_t gate;
	atomic_uint begun;
	unsigned lines, missing;
	char last[1024];
	char id[BIZLOCK_ID_MAX + 1], owner[BIZLOCK_OWNER_NAME_MAX + 1];
	bool keyless;
} told = {.gate = PTHREAD_MUTEX_INITIALIZER};

static struct bl_trace trace;
static struct bl_err err;

static void keep(void *arg, const bizlock_trace *line)
{
	struct told *t = arg;
	unsigned missing;

	t->begun++;
	pthread_mutex_lock(&t->gate);
	pthread_mutex_unlock(&t->gate);
	if (sscanf(line->text, "%u lines are missing", &missing) == 1)
		t->missing += missing;
	else
		t->lines++;
	t->keyless = !line->biz_type && !line->biz_id && !line->owner;
	snprintf(t->last, sizeof(t->last), "%s", line->text);
	snprintf(t->id, sizeof(t->id), "%s", line->biz_id ? line->biz_id : "");
	snprintf(t->owner, sizeof(t->owner), "%s", line->owner ? line->owner : "");
}

static void begin(void)
{
	bl_trace_init(&trace);
	cr_assert_eq(bl_trace_tell_to(&trace, keep, &told, &err), BIZLOCK_OK);
}

static struct bl_key key_of(const char *id)
{
	struct bl_key key;

	cr_assert_eq(bl_key_make(&key, (bizlock_key){"type", id}, &err), BIZLOCK_OK);
	return key;
}

static struct bl_owner owner_of(const char *name)
{
	struct bl_owner owner;

	cr_assert_eq(bl_owner_make(&owner, name, &err), BIZLOCK_OK);
	return owner;
}

Test(trace_lines, a_line_has_key_owner_and_words)
{
	struct bl_key key = key_of("4711");
	struct bl_owner owner = owner_of("task");

	begin();
	BL_TRACE(&trace, &key, &owner, "seen %d times", 7);
	bl_trace_end(&trace);
	cr_assert_eq(told.lines, 1);
	cr_assert_str_eq(told.last, "type/4711 task: seen 7 times");
	cr_assert_str_eq(told.id, "4711");
	cr_assert_str_eq(told.owner, "task");
}

Test(trace_lines, a_line_may_be_about_no_key)
{
	begin();
	BL_TRACE(&trace, NULL, NULL, "connected");
	bl_trace_end(&trace);
	cr_assert_str_eq(told.last, "connected");
	cr_assert(told.keyless);
}

/* A key with a line feed must not forge a line of somebody's log. */
Test(trace_lines, the_text_is_printable_and_the_key_as_it_is)
{
	struct bl_key key = key_of("a\nb\x1b[2J");

	begin();
	BL_TRACE(&trace, &key, NULL, "the server says \"%s\"", "\r\xff");
	bl_trace_end(&trace);
	cr_assert_str_eq(told.last, "type/a?b?[2J: the server says \"??\"");
	cr_assert_str_eq(told.id, "a\nb\x1b[2J");
}

Test(trace_lines, the_longest_names_leave_room_for_words)
{
	char id[BIZLOCK_ID_MAX + 1], name[BIZLOCK_OWNER_NAME_MAX + 1], words[320];
	struct bl_key key;
	struct bl_owner owner;

	memset(id, 'i', sizeof(id) - 1);
	memset(name, 'n', sizeof(name) - 1);
	memset(words, 'w', sizeof(words) - 1);
	id[sizeof(id) - 1] = name[sizeof(name) - 1] = words[sizeof(words) - 1] = '\0';
	key = key_of(id);
	owner = owner_of(name);
	begin();
	BL_TRACE(&trace, &key, &owner, "%s", words);
	bl_trace_end(&trace);
	cr_assert(strstr(told.last, words));
}

static int never(void)
{
	cr_assert_fail("an argument was evaluated although nobody is told");
	return 0;
}

Test(trace_lines, nothing_is_formatted_while_nobody_is_told)
{
	bl_trace_init(&trace);
	BL_TRACE(&trace, NULL, NULL, "%d", never());
	cr_assert_eq(bl_trace_tell_to(&trace, keep, &told, &err), BIZLOCK_OK);
	cr_assert_eq(bl_trace_tell_to(&trace, NULL, NULL, &err), BIZLOCK_OK);
	BL_TRACE(&trace, NULL, NULL, "%d", never());
	bl_trace_end(&trace);
	cr_assert_eq(told.lines, 0);
}

/* Whoever writes goes on, although the function does not. */
Test(trace_lines, what_has_no_room_is_counted_in_its_place)
{
	begin();
	pthread_mutex_lock(&told.gate);
	for (int i = 0; i < MANY; i++)
		BL_TRACE(&trace, NULL, NULL, "line %d", i);
	pthread_mutex_unlock(&told.gate);
	cr_assert_eq(bl_trace_tell_to(&trace, NULL, NULL, &err), BIZLOCK_OK);
	cr_assert_eq(told.lines + told.missing, MANY, "%u and %u", told.lines, told.missing);
	cr_assert_gt(told.missing, BL_TRACE_LINES);
	cr_assert(strstr(told.last, "lines are missing here"), "%s", told.last);
	bl_trace_end(&trace);
}

Test(trace_lines, it_goes_on_behind_what_is_missing)
{
	begin();
	pthread_mutex_lock(&told.gate);
	for (int i = 0; i < MANY; i++)
		BL_TRACE(&trace, NULL, NULL, "line %d", i);
	pthread_mutex_unlock(&told.gate);
	while (told.begun < 3)
		bl_sleep(BL_NS_PER_MS);
	BL_TRACE(&trace, NULL, NULL, "the last one");
	bl_trace_end(&trace);
	cr_assert_str_eq(told.last, "the last one");
	cr_assert_eq(told.lines + told.missing, MANY + 1);
}

static void set_anew(void *arg, const bizlock_trace *line)
{
	int *rc = arg;

	(void)line;
	*rc = bl_trace_tell_to(&trace, NULL, NULL, &err);
}

Test(trace_lines, its_own_function_cannot_take_it_away)
{
	struct bl_err mine;
	int rc = -1;

	bl_trace_init(&trace);
	cr_assert_eq(bl_trace_tell_to(&trace, set_anew, &rc, &mine), BIZLOCK_OK);
	BL_TRACE(&trace, NULL, NULL, "a line");
	bl_trace_end(&trace);
	cr_assert_eq(rc, BIZLOCK_MISUSE);
}

static void *write_many(void *arg)
{
	struct bl_key key = key_of("k");

	for (int i = 0; i < MANY; i++)
		BL_TRACE(&trace, &key, NULL, "line %d of %s", i, (const char *)arg);
	return NULL;
}

/* Each line that was told, or counted, was written once; after the last return none is told. */
Test(trace_lines, many_threads_write_while_it_comes_and_goes)
{
	pthread_t threads[THREADS];
	unsigned lines;

	bl_trace_init(&trace);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, write_many, "a thread"), 0);
	for (int i = 0; i < 20; i++) {
		cr_assert_eq(bl_trace_tell_to(&trace, keep, &told, &err), BIZLOCK_OK);
		BL_TRACE(&trace, NULL, NULL, "round %d", i);
		cr_assert_eq(bl_trace_tell_to(&trace, NULL, NULL, &err), BIZLOCK_OK);
	}
	lines = told.lines;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	cr_assert_geq(told.lines + told.missing, 20);
	cr_assert_leq(told.lines + told.missing, THREADS * MANY + 20);
	cr_assert_eq(told.lines, lines);
	bl_trace_end(&trace);
}
