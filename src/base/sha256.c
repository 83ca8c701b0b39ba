#include "base/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned bits)
{
	return x >> bits | x << (32 - bits);
}

static uint32_t read_word(const unsigned char *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The words of the message schedule are made as they are needed: word i takes the place of word
 * i - 16. */
static uint32_t next_word(uint32_t words[16], unsigned i)
{
	uint32_t early = words[(i + 1) % 16], late = words[(i + 14) % 16];

	words[i % 16] += (rotate(early, 7) ^ rotate(early, 18) ^ early >> 3) + words[(i + 9) % 16] +
	                 (rotate(late, 17) ^ rotate(late, 19) ^ late >> 10);
	return words[i % 16];
}

/* Names as in the standard. Eight variables, not an array: a compiler keeps them in registers. */
static void compress(uint32_t state[8], const unsigned char *block)
{
	uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
	uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
	uint32_t words[16];

	for (unsigned i = 0; i < 16; i++)
		words[i] = read_word(block + 4 * i);
	for (unsigned i = 0; i < 64; i++) {
		uint32_t t1 = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) +
		              ((e & f) ^ (~e & g)) + constants[i] +
		              (i < 16 ? words[i] : next_word(words, i));
		uint32_t t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) +
		              ((a & b) ^ (a & c) ^ (b & c));

		h = g;
		g = f;
		f = e;
		e = d + t1;
		d = c;
		c = b;
		b = a;
		a = t1 + t2;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
	state[5] += f;
	state[6] += g;
	state[7] += h;
}

void bl_sha256_start(struct bl_sha256 *h)
{
	*h = (struct bl_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
	                                  0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void bl_sha256_add(struct bl_sha256 *h, const void *data, size_t len)
{
	const unsigned char *from = data;
	size_t filled = h->len % BL_SHA256_BLOCK;

	h->len += len;
	while (filled + len >= BL_SHA256_BLOCK) {
		size_t part = BL_SHA256_BLOCK - filled;

		memcpy(h->block + filled, from, part);
		compress(h->state, h->block);
		from += part;
		len -= part;
		filled = 0;
	}
	memcpy(h->block + filled, from, len);
}

/* A bit that is set, zeros, and the length in bits fill the last block. */
void bl_sha256_end(struct bl_sha256 *h, unsigned char ret[BL_SHA256_BYTES])
{
	static const unsigned char padding[BL_SHA256_BLOCK] = {0x80};
	uint64_t bits = h->len * 8;
	size_t filled = h->len % BL_SHA256_BLOCK, room = BL_SHA256_BLOCK - 8;
	unsigned char length[8];

	for (unsigned i = 0; i < 8; i++)
		length[i] = (unsigned char)(bits >> (56 - 8 * i));
	bl_sha256_add(h, padding, filled < room ? room - filled : BL_SHA256_BLOCK + room - filled);
	bl_sha256_add(h, length, sizeof(length));
	for (unsigned i = 0; i < BL_SHA256_BYTES; i++)
		ret[i] = (unsigned char)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}
