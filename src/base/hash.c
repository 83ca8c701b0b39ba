#include "base/hash.h"

/* The prime is 2^88 + 0x13b, so that a product is a shift and a small multiple, which
 * 64-bit words can compute: ISO C has no 128-bit type. */
#define PRIME_LOW 0x13bu
#define PRIME_SHIFT_HI 24 /* 88 - 64 */

struct bl_hash bl_hash_start(void)
{
	return (struct bl_hash){0x6c62272e07bb0142u, 0x62b821756295c58du};
}

static void multiply(struct bl_hash *h)
{
	uint64_t low = (h->lo & 0xffffffffu) * PRIME_LOW;
	uint64_t mid = (h->lo >> 32) * PRIME_LOW + (low >> 32);
	uint64_t shifted = h->lo << PRIME_SHIFT_HI;

	h->hi = h->hi * PRIME_LOW + (mid >> 32) + shifted;
	h->lo = (mid << 32) | (low & 0xffffffffu);
}

void bl_hash_add(struct bl_hash *h, const void *data, size_t len)
{
	const unsigned char *byte = data;

	for (size_t i = 0; i < len; i++) {
		h->lo ^= byte[i];
		multiply(h);
	}
}

void bl_hash_hex(const struct bl_hash *h, char ret[33])
{
	static const char digits[] = "0123456789abcdef";

	for (unsigned i = 0; i < 16; i++) {
		ret[i] = digits[(h->hi >> (60 - 4 * i)) & 15];
		ret[16 + i] = digits[(h->lo >> (60 - 4 * i)) & 15];
	}
	ret[32] = '\0';
}
