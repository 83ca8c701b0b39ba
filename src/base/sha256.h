/* SHA-256 (FIPS 180-4), for names that SQL has to compute, too: SHA2() is on all servers. */
#ifndef BL_BASE_SHA256_H
#define BL_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define BL_SHA256_BYTES 32
#define BL_SHA256_BLOCK 64

/* A hash that is under way; it may be copied, to go on from the same beginning again. */
struct bl_sha256 {
	uint32_t state[8];
	uint64_t len; /* bytes added so far */
	unsigned char block[BL_SHA256_BLOCK];
};

void bl_sha256_start(struct bl_sha256 *h);
void bl_sha256_add(struct bl_sha256 *h, const void *data, size_t len);
void bl_sha256_end(struct bl_sha256 *h, unsigned char ret[BL_SHA256_BYTES]);

#endif
