/* Random numbers: from the kernel for identities, from a small generator for jitter. */
#ifndef BL_BASE_RND_H
#define BL_BASE_RND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unpredictable bytes. false: the kernel gave none. */
bool bl_random_bytes(void *ret, size_t n);

/* SplitMix64 (Steele, Lea, Flood 2014): any seed is a good seed. */
uint64_t bl_rnd_next(uint64_t *state);

#endif
