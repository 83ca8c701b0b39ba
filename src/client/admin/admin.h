/* Calls for administrators of locks: look, break, reap, diagnose, migrate. All functions are
 * entered with the mutex free. */
#ifndef BL_CLIENT_ADMIN_ADMIN_H
#define BL_CLIENT_ADMIN_ADMIN_H

#include "client/state.h"

/* Shows rows: of `key`; if that is NULL, of biz_type; if that is NULL, too, all rows. */
int bl_client_look(struct bizlock *b, const struct bl_key *key, const char *biz_type,
                   int (*fn)(void *arg, const bizlock_info *), void *arg, struct bl_err *err);

int bl_client_break(struct bl_call *call, uint64_t seen_fence);

int bl_client_waiters(struct bizlock *b, const struct bl_key *keys, size_t n,
                      int (*fn)(void *arg, const bizlock_waiter *), void *arg, struct bl_err *err);

/* Shows the runs of biz_type and biz_id; NULL: of all. */
int bl_client_each_run(struct bizlock *b, const char *biz_type, const char *biz_id,
                       int (*fn)(void *arg, const bizlock_run *), void *arg, struct bl_err *err);

int bl_client_reap(struct bizlock *b, const bizlock_reap_opts *opts, bizlock_reap_result *ret,
                   struct bl_err *err);

/* These need no open client: each makes a connection of its own, if it needs one. */
int bl_client_doctor(struct bizlock *b, int (*fn)(void *arg, const bizlock_finding *), void *arg,
                     struct bl_err *err);
int bl_client_each_migration(struct bizlock *b, int (*fn)(void *arg, const bizlock_migration *),
                             void *arg, struct bl_err *err);
int bl_client_migrate(struct bizlock *b, struct bl_err *err);
int bl_client_raise_fences(struct bizlock *b, uint64_t *ret, struct bl_err *err);
int bl_client_migrate_routines(struct bizlock *b, struct bl_err *err);
int bl_client_drop_routines(struct bizlock *b, struct bl_err *err);

/* routines: those of a user of the routines. */
int bl_client_grants(struct bizlock *b, const char *account, bool routines, struct bl_buf *ret,
                     struct bl_err *err);

#endif
