/* What the files of watching share. */
#ifndef BL_STORE_WATCH_PARTS_H
#define BL_STORE_WATCH_PARTS_H

#include "store/watch.h"

/* A release may end a statement of a watcher that does not sleep, so that it has to be repeated. */
#define BL_WATCH_TRIES 8

/* Runs s->text, which asks for so many columns, until nobody has ended it. */
int bl_watch_ask(struct bl_session *s, unsigned columns, struct bl_rows **ret, struct bl_err *err);

/* Puts keys first that are not watched among those that share a lock: how many. */
size_t bl_watch_among_last(struct bl_watched **watched, size_t n);

/* Of those watched among sharers: looks at those without a mark, or at all. */
int bl_watch_look_shared(struct bl_session *s, struct bl_watched **shared, size_t n, bool all,
                         struct bl_err *err);
void bl_watch_add_shared(struct bl_session *s, const struct bl_watched *w); /* in the way: 1, 0 */

/* As many shared locks are looked at by one statement: each may be a question to the table. With
 * more, a sleep does not ask for all, and is that short: one of the others may have been released
 * just before it. */
#define BL_WATCH_SHARED_MAX 256
#define BL_WATCH_MANY_MS 200

/* Was a statement ended from outside? */
bool bl_watch_stopped(int rc, const struct bl_err *err);

#endif
