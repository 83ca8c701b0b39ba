/* The doorbell: a GET_LOCK of the server, named after schema, table and key. */
#ifndef BL_STORE_BELL_BELL_H
#define BL_STORE_BELL_BELL_H

#include "base/sha256.h"
#include "store/session/session.h"

/* The hash from which all doorbell names of a client start. prefix: of the tables' names. */
struct bl_sha256 bl_bell_seed(const char *database, const char *prefix);

/* The name has a fixed length whatever the key is. */
void bl_bell_name(char ret[BL_BELL_MAX + 1], struct bl_sha256 seed, const struct bl_key *key);

enum bl_heard {
	BL_HEARD_RING, /* the bell is ours now */
	BL_HEARD_NONE, /* the time is over, or the server ended the wait early */
	BL_HEARD_WAKE  /* wake_fd became readable; the session is gone */
};

/* Waits in line for the bell, for ms at most. The session must have no other bell: two sessions
 * that wait for each other's bell would be a deadlock. Errors: CONN, DB. */
int bl_bell_wait(struct bl_session *s, const char *bell, int64_t ms, int wake_fd,
                 enum bl_heard *ret, struct bl_err *err);

/* The same for a sleep: sends s->text, a SELECT of a number. *ret RING: the number is 1. */
int bl_bell_sleep(struct bl_session *s, int64_t ms, int wake_fd, enum bl_heard *ret,
                  struct bl_err *err);

/* Does GET_LOCK work on this server? Some clusters and proxies forbid it. OK, or why not:
 * CONN, DB. */
int bl_bell_try(struct bl_session *s, struct bl_err *err);

#endif
