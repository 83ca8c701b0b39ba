/* The hash FNV-1a (Fowler, Noll, Vo): of 128 bits, for the check of a ticket, which finds what was
 * mistyped or cut off, and no forger; of 64 bits, for tables in memory. */
#ifndef BL_BASE_HASH_H
#define BL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct bl_hash {
	uint64_t hi, lo;
};

struct bl_hash bl_hash_start(void);
void bl_hash_add(struct bl_hash *h, const void *data, size_t len);
void bl_hash_hex(const struct bl_hash *h, char ret[33]); /* lower case, NUL-terminated */

/* 64 bits: for tables in memory. */
#define BL_HASH64_START UINT64_C(0xcbf29ce484222325)

static inline uint64_t bl_hash64_add(uint64_t h, unsigned char byte)
{
	return (h ^ byte) * UINT64_C(0x100000001b3);
}

/* Mixes a hash, so that it can be combined with another hash. */
static inline uint64_t bl_hash64_mix(uint64_t h)
{
	return h * UINT64_C(0x9e3779b97f4a7c15);
}

#endif
