/* What watch.c and watch_look.c share. */
#ifndef BL_STORE_WATCH_PARTS_H
#define BL_STORE_WATCH_PARTS_H

#include "store/watch.h"

/* A release may end a statement of a watcher that does not sleep, so that it has to be repeated. */
#define BL_WATCH_TRIES 8

/* Was a statement ended from outside? */
bool bl_watch_stopped(int rc, const struct bl_err *err);

#endif
