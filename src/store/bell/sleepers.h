/* Those that sleep, but not at the doorbell: connections that watch keys for many
 * (watch/watched.h), and whoever is first in line and waits for others to leave. Each has a named
 * lock of its own for a key, by which whoever gives back the doorbell, or leaves, finds it, and is
 * woken by KILL QUERY. */
#ifndef BL_STORE_BELL_SLEEPERS_H
#define BL_STORE_BELL_SLEEPERS_H

#include "store/session/session.h"

/* As many connections may watch a key at the same time. Each costs every release the look whether
 * it is there. What finds no room looks at its keys now and then instead. */
#define BL_WATCHER_NAMES 2

/* One more name is that of the first in line, while it waits for others to leave
 * (shared/sharers_wait.c). */
#define BL_FIRST_NAME BL_WATCHER_NAMES
#define BL_SLEEPER_NAMES (BL_WATCHER_NAMES + 1)

/* Those that watch, and whoever is first in line. */
enum bl_sleepers { BL_SLEEPERS_WATCHING, BL_SLEEPERS_FIRST, BL_SLEEPERS_ALL };

/* Of the names of a key, the first that these may have, and the end of them. */
unsigned bl_sleepers_slots(enum bl_sleepers whom, unsigned *ret_end);

/* Adds the name of a slot, as the first argument of a function: before('NAME'after). */
void bl_sleepers_add_name(struct bl_buf *text, const char *before, unsigned slot, const char *bell,
                          const char *after);

/* The last statement of s->text, which gives doorbells back; its answer tells whether anybody may
 * watch those keys. */
void bl_sleepers_add_rings(struct bl_session *s, const char *const *bells, size_t n);

/* The same for keys whose doorbells the session does not have. */
void bl_sleepers_add_question(struct bl_buf *text, const char *const *bells, size_t n,
                              enum bl_sleepers whom);

/* Follows the answers to that text. Wakes them, as far as they may be woken: another user's may
 * not. Sets s->woke to whether there are any. */
void bl_sleepers_wake(struct bl_session *s, const char *const *bells, size_t n,
                      enum bl_sleepers whom);

/* Gives back n doorbells of locks whose rows stay, and wakes those that watch. CONN, DB, NOMEM. */
int bl_sleepers_ring(struct bl_session *s, const char *const *bells, size_t n, struct bl_err *err);

#endif
