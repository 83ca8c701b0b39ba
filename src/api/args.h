/* Checks of the arguments that callers pass in. Each answers INVALID, and names the argument. */
#ifndef BL_API_ARGS_H
#define BL_API_ARGS_H

#include "client/state.h"

/* Fills *ret_opts, with defaults where opts is NULL. ret may be NULL. */
int bl_args_acquire(const bizlock_acquire_opts *opts, const bizlock_grant *ret,
                    bizlock_acquire_opts *ret_opts, struct bl_err *err);

/* INVALID if the flags have BIZLOCK_SHARED. what: says what cannot be done with that flag. */
int bl_args_alone(const bizlock_acquire_opts *opts, const char *what, struct bl_err *err);

int bl_args_keys(const bizlock_key *keys, size_t n, struct bl_err *err);

/* INVALID unless `given`: the argument `name` is NULL, and must not be. */
int bl_args_given(bool given, const char *name, struct bl_err *err);

/* 0 is valid: it means the default. */
int bl_args_lease(uint32_t lease_ms, struct bl_err *err);

/* ret: the caller has set its size. */
int bl_args_grant(const bizlock_grant *ret, struct bl_err *err);
int bl_args_numbers(const bizlock_numbers *ret, struct bl_err *err);

/* As bl_args_acquire(), for the reaper. */
int bl_args_reap(const bizlock_reap_opts *opts, const bizlock_reap_result *ret,
                 bizlock_reap_opts *ret_opts, struct bl_err *err);

/* The same, for the result of a run. */
int bl_args_result(const bizlock_run_result *result, bizlock_run_result *ret, struct bl_err *err);

struct bl_request bl_args_request(const bizlock_acquire_opts *opts, const struct bl_config *config);

/* Fills a struct of the caller's, which begins with its size: copies the fields that both sides
 * know, and sets the rest to zero. grants: n structs, all of the size that the first one has. */
void bl_args_give(void *ret, const void *known, size_t known_size);
void bl_args_grants(const bizlock_grant *grants, size_t n, bizlock_grant *ret);

/* Copies a text into the caller's buffer; see bizlock_stats_prometheus(). LIMIT, NOMEM. */
int bl_args_text(const struct bl_buf *text, char *ret, size_t size, size_t *ret_len,
                 struct bl_err *err);

#endif
