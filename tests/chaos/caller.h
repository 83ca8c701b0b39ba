/* A program without the library: it takes locks by CALL, as docs/languages.md says, and renews and
 * fences for itself. Its answers are those that the library would give. */
#ifndef CHAOS_CALLER_H
#define CHAOS_CALLER_H

#include <bizlock.h>
#include <stdint.h>

struct caller;

/* hosts: "host:port,..."; option_file has the password. Nothing is connected yet. */
struct caller *caller_new(const char *hosts, const char *option_file, const char *user,
                          const char *schema, unsigned number);
void caller_free(struct caller *c);

/* BIZLOCK_OK, or BIZLOCK_TIMEOUT. Takes longer than wait_ms by no more than two calls that the
 * server does not answer. */
int caller_take(struct caller *c, bizlock_key key, int64_t lease_ms, int64_t wait_ms,
                uint64_t *ret_fence);

/* What is left of its lease by the local clock, which it renews when a third is over; 0: lost. */
int64_t caller_left_ms(struct caller *c);

/* BIZLOCK_OK or BIZLOCK_LOST. */
int caller_release(struct caller *c);

#endif
