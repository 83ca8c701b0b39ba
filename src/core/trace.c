#include "core/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for a key, an owner and a row's owner of the largest size, and the words between. */
#define TEXT_MAX 768

struct bl_trace_line {
	int64_t time_us;
	unsigned missing; /* > 0: this line has no text, and counts the lines dropped here */
	char type[BIZLOCK_TYPE_MAX + 1], id[BIZLOCK_ID_MAX + 1];
	char owner[BIZLOCK_OWNER_NAME_MAX + 1];
	char text[TEXT_MAX];
};

/* The trace that the calling thread belongs to, or NULL. */
static _Thread_local const struct bl_trace *telling;

void bl_trace_init(struct bl_trace *t)
{
	pthread_mutex_init(&t->setting, NULL);
	pthread_mutex_init(&t->mu, NULL);
}

/* ---- writing ------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4))) static void write_text(char *ret, size_t size,
                                                             const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	bl_err_format(ret, size, fmt, args);
	va_end(args);
}

/* The place for one more line. NULL: the line is dropped; the last place in the ring counts it. */
static struct bl_trace_line *next_place(struct bl_trace *t)
{
	bool full = t->count == BL_TRACE_LINES;
	struct bl_trace_line *line;

	t->count += !full;
	line = &t->ring[(t->first + t->count - 1) % BL_TRACE_LINES];
	if (!full) {
		*line = (struct bl_trace_line){.time_us = bl_wall_us()};
		bl_worker_by(&t->worker, 0);
	}
	if (t->count < BL_TRACE_LINES)
		return line;
	line->missing++;
	return NULL;
}

static void write_line(struct bl_trace_line *line, const struct bl_key *key,
                       const struct bl_owner *owner, const char *fmt, va_list args)
{
	char words[TEXT_MAX];

	bl_err_format(words, sizeof(words), fmt, args);
	if (key) {
		memcpy(line->type, key->type, key->type_len + 1U);
		memcpy(line->id, key->id, key->id_len + 1U);
	}
	if (owner)
		memcpy(line->owner, owner->name, owner->name_len + 1U);
	write_text(line->text, sizeof(line->text), "%s%s%s%s%s%s%s", line->type, key ? "/" : "",
	           line->id, owner && key ? " " : "", line->owner, key || owner ? ": " : "", words);
}

void bl_trace_add(struct bl_trace *t, const struct bl_key *key, const struct bl_owner *owner,
                  const char *fmt, ...)
{
	struct bl_trace_line *line;
	va_list args;

	pthread_mutex_lock(&t->mu);
	line = t->on ? next_place(t) : NULL;
	if (line) {
		va_start(args, fmt);
		write_line(line, key, owner, fmt, args);
		va_end(args);
	}
	pthread_mutex_unlock(&t->mu);
}

/* ---- telling ------------------------------------------------------------------------------- */

static void tell_line(const struct bl_trace *t, struct bl_trace_line *line)
{
	bizlock_trace told = {.size = sizeof(told),
	                      .time_us = line->time_us,
	                      .biz_type = line->type[0] ? line->type : NULL,
	                      .biz_id = line->id[0] ? line->id : NULL,
	                      .owner = line->owner[0] ? line->owner : NULL,
	                      .text = line->text};

	if (line->missing)
		write_text(line->text, sizeof(line->text),
		           "%u lines are missing here: they came faster than they were taken",
		           line->missing);
	t->fn(t->arg, &told);
}

/* Before it stops, it tells the lines that are left. */
static void *tell_always(void *arg)
{
	struct bl_trace *t = arg;
	struct bl_worker *w = &t->worker;

	telling = t;
	pthread_mutex_lock(&t->mu);
	while (t->count > 0 || !w->stop) {
		struct bl_trace_line line;

		w->at = BL_NEVER;
		if (t->count == 0) {
			bl_worker_sleep(w, &t->mu);
			continue;
		}
		line = t->ring[t->first];
		t->first = (t->first + 1) % BL_TRACE_LINES;
		t->count--;
		pthread_mutex_unlock(&t->mu);
		tell_line(t, &line);
		pthread_mutex_lock(&t->mu);
	}
	pthread_mutex_unlock(&t->mu);
	return NULL;
}

/* ---- on and off ---------------------------------------------------------------------------- */

static void turn(struct bl_trace *t, bool on)
{
	pthread_mutex_lock(&t->mu);
	t->on = on;
	pthread_mutex_unlock(&t->mu);
}

static void stop(struct bl_trace *t)
{
	turn(t, false);
	bl_worker_stop(&t->worker, &t->mu);
	free(t->ring);
	t->ring = NULL;
}

static int start(struct bl_trace *t, bl_trace_fn *fn, void *arg, struct bl_err *err)
{
	int rc;

	t->ring = calloc(BL_TRACE_LINES, sizeof(*t->ring));
	if (!t->ring)
		return bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	t->fn = fn;
	t->arg = arg;
	t->worker = (struct bl_worker){.running = false};
	rc = bl_worker_start(&t->worker, tell_always, t, err);
	if (rc == BIZLOCK_OK)
		turn(t, true);
	else
		stop(t);
	return rc;
}

int bl_trace_tell_to(struct bl_trace *t, bl_trace_fn *fn, void *arg, struct bl_err *err)
{
	int rc = BIZLOCK_OK;

	if (telling == t)
		return bl_err_set(err, BIZLOCK_MISUSE,
		                  "the function of the trace would wait for its own end");
	pthread_mutex_lock(&t->setting);
	stop(t);
	if (fn)
		rc = start(t, fn, arg, err);
	pthread_mutex_unlock(&t->setting);
	return rc;
}

void bl_trace_end(struct bl_trace *t)
{
	stop(t);
	pthread_mutex_destroy(&t->setting);
	pthread_mutex_destroy(&t->mu);
}

void bl_trace_forget(struct bl_trace *t)
{
	t->on = false;
	free(t->ring);
	t->ring = NULL;
}
