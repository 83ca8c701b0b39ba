#include <criterion/criterion.h>
#include <string.h>

#include "base/hash.h"

static const char *hex_of(const char *text, size_t len)
{
	static char hex[33];
	struct bl_hash h = bl_hash_start();

	bl_hash_add(&h, text, len);
	bl_hash_hex(&h, hex);
	return hex;
}

/* From the authors' test suite. */
Test(hash, is_fnv_1a_128)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
	        {"", "6c62272e07bb014262b821756295c58d"},
	        {"a", "d228cb696f1a8caf78912b704e4a8964"},
	        {"foobar", "343e1662793c64bf6f0d3597ba446f18"},
	};

	for (size_t i = 0; i < 3; i++)
		cr_expect_str_eq(hex_of(rows[i].text, strlen(rows[i].text)), rows[i].hex);
}

Test(hash, pieces_have_the_hash_of_the_whole)
{
	static const char text[] = "order\0"
	                           "4711 \xf0\x9f\x94\x92";
	char whole[33], pieces[33];

	memcpy(whole, hex_of(text, sizeof(text)), sizeof(whole));
	for (size_t cut = 0; cut <= sizeof(text); cut++) {
		struct bl_hash h = bl_hash_start();

		bl_hash_add(&h, text, cut);
		bl_hash_add(&h, text + cut, sizeof(text) - cut);
		bl_hash_hex(&h, pieces);
		cr_expect_str_eq(pieces, whole, "cut at %zu", cut);
	}
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 wide;

/* The definition, word for word, on a type that is wide enough for every carry. */
Test(hash, agrees_with_the_definition_on_every_prefix)
{
	const wide prime = ((wide)1 << 88) + 0x13b;
	wide model = ((wide)0x6c62272e07bb0142u << 64) + 0x62b821756295c58du;
	struct bl_hash h = bl_hash_start();

	for (unsigned i = 0; i < 10000; i++) {
		unsigned char byte = (unsigned char)(i * 37 + (i >> 8));

		model = (model ^ byte) * prime;
		bl_hash_add(&h, &byte, 1);
		cr_assert_eq(h.hi, (uint64_t)(model >> 64), "byte %u", i);
		cr_assert_eq(h.lo, (uint64_t)model, "byte %u", i);
	}
}
#endif
