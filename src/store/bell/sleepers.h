/* Waking connections that sleep elsewhere than at the doorbell. These are watchers, which sleep for
 * many waiters (watch/watched.h), and the first in line, which waits for others to leave. A sleeper
 * has a named lock of its own for each key. A release finds the sleeper by that name, and wakes it
 * by KILL QUERY. */
#ifndef BL_STORE_BELL_SLEEPERS_H
#define BL_STORE_BELL_SLEEPERS_H

#include "store/session/session.h"

/* At most this many connections watch a key at the same time: for each, every release has to look
 * whether it is there. A connection that finds no name free looks at its keys now and then
 * instead. */
#define BL_WATCHER_NAMES 2

/* One more name is for the first in line, while it waits for others to leave
 * (shared/sharers_wait.c). */
#define BL_FIRST_NAME BL_WATCHER_NAMES
#define BL_SLEEPER_NAMES (BL_WATCHER_NAMES + 1)

/* Watchers, the first in line, or both. */
enum bl_sleepers { BL_SLEEPERS_WATCHING, BL_SLEEPERS_FIRST, BL_SLEEPERS_ALL };

/* The first slot of the names that `whom` may have; *ret_end: the slot behind their last. */
unsigned bl_sleepers_slots(enum bl_sleepers whom, unsigned *ret_end);

/* Adds the name of a slot, as the first argument of a function: before('NAME'after). */
void bl_sleepers_add_name(struct bl_buf *text, const char *before, unsigned slot, const char *bell,
                          const char *after);

/* Adds the last statement of s->text, which gives doorbells back. Its answer tells whether anybody
 * may watch the keys. */
void bl_sleepers_add_rings(struct bl_session *s, const char *const *bells, size_t n);

/* The same for keys whose doorbells the session does not have. */
void bl_sleepers_add_question(struct bl_buf *text, const char *const *bells, size_t n,
                              enum bl_sleepers whom);

/* To be called after the answers to that text. Wakes the sleepers, but not those of other MySQL
 * users, which we may not kill. s->woke: sleepers were found. */
void bl_sleepers_wake(struct bl_session *s, const char *const *bells, size_t n,
                      enum bl_sleepers whom);

/* Gives back n doorbells of locks whose rows stay, and wakes their watchers. CONN, DB, NOMEM. */
int bl_sleepers_ring(struct bl_session *s, const char *const *bells, size_t n, struct bl_err *err);

#endif
