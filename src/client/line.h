/* Where threads of this process wait for one key, in order of arrival: only the
 * first goes to the server. Guarded by the client's mutex. */
#ifndef BL_CLIENT_LINE_H
#define BL_CLIENT_LINE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "core/key.h"

#define BL_LINES 64 /* buckets */

enum bl_place_state {
	BL_PLACE_HOPES,  /* once it is the first, the lock may be passed on to it: see pass.h */
	BL_PLACE_SERVED, /* that is under way, and can not be called off */
	BL_PLACE_HOLDS,  /* that is done */
	BL_PLACE_STANDS  /* it goes to the server, or is there */
};

struct bl_contender;

struct bl_place { /* in a line; lives on the stack of its thread */
	struct bl_place *next;
	pthread_cond_t first; /* signalled when this place becomes the first, and, of the
	                         first one, when its state or what it hopes for changes */
	enum bl_place_state state;
	struct bl_contender *who;
};

struct bl_line {
	struct bl_line *next; /* in its bucket */
	struct bl_key key;
	struct bl_place *head, *tail;
	char holder[320]; /* what the first one saw last, for the others' messages */
};

struct bl_lines {
	struct bl_line *buckets[BL_LINES];
};

/* Joins the line of `key`, at its end, and makes it if there is none.
 * NULL: out of memory. Every join needs a leave. */
struct bl_line *bl_line_join(struct bl_lines *lines, const struct bl_key *key,
                             struct bl_place *place);

/* NULL: nobody waits for that key. */
struct bl_line *bl_line_find(const struct bl_lines *lines, const struct bl_key *key);

/* The first one in line, if there is a line, looks again at what it waits for. */
void bl_line_stir(const struct bl_lines *lines, const struct bl_key *key);

static inline bool bl_line_first(const struct bl_line *line, const struct bl_place *place)
{
	return line->head == place;
}

/* Leaves from wherever in the line; the next first one is signalled. Frees the
 * line with its last place. */
void bl_line_leave(struct bl_lines *lines, struct bl_line *line, struct bl_place *place);

#endif
