#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

static void end_as_hex(struct bl_sha256 *h, char ret[2 * BL_SHA256_BYTES + 1])
{
	unsigned char bytes[BL_SHA256_BYTES];

	bl_sha256_end(h, bytes);
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(ret + 2 * i, 3, "%02x", bytes[i]);
}

/* Examples of FIPS 180-4 and of NIST's SHAVS: no block, one, one that the padding just fills, two.
 */
Test(sha256, is_that_of_the_standard)
{
	static const struct {
		const char *text, *hex;
	} rows[] = {
	        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
	         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char hex[2 * BL_SHA256_BYTES + 1];
		struct bl_sha256 h;

		bl_sha256_start(&h);
		bl_sha256_add(&h, rows[i].text, strlen(rows[i].text));
		end_as_hex(&h, hex);
		cr_expect_str_eq(hex, rows[i].hex, "\"%s\"", rows[i].text);
	}
}

Test(sha256, takes_a_million_letters)
{
	char hex[2 * BL_SHA256_BYTES + 1];
	struct bl_sha256 h;

	bl_sha256_start(&h);
	for (unsigned i = 0; i < 100000; i++)
		bl_sha256_add(&h, "aaaaaaaaaa", 10);
	end_as_hex(&h, hex);
	cr_expect_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

Test(sha256, is_the_same_in_pieces_of_any_size)
{
	unsigned char text[3 * BL_SHA256_BLOCK];
	char whole[2 * BL_SHA256_BYTES + 1], pieces[2 * BL_SHA256_BYTES + 1];
	struct bl_sha256 h, copy;

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (unsigned char)(7 * i);
	for (size_t len = 0; len <= sizeof(text); len++) {
		bl_sha256_start(&h);
		bl_sha256_add(&h, text, len);
		end_as_hex(&h, whole);
		for (size_t cut = 0; cut <= len; cut++) {
			bl_sha256_start(&h);
			bl_sha256_add(&h, text, cut);
			copy = h;
			bl_sha256_add(&copy, text + cut, len - cut);
			end_as_hex(&copy, pieces);
			cr_assert_str_eq(pieces, whole, "%zu of %zu bytes first", cut, len);
		}
	}
}
