#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "core/key.h"

static struct bl_key make(const char *type, const char *id)
{
	struct bl_key key;
	struct bl_err err;
	bizlock_key raw = {type, id};

	bl_err_clear(&err);
	cr_assert_eq(bl_key_make(&key, raw, &err), BIZLOCK_OK, "%s", err.msg);
	return key;
}

/* `len` bytes of x, then `tail`. Valid for four calls. */
static const char *long_text(size_t len, const char *tail)
{
	static char texts[4][400];
	static unsigned turn;
	char *text = texts[turn++ % 4];

	memset(text, 'x', len);
	memcpy(text + len, tail, strlen(tail) + 1);
	return text;
}

Test(key, is_copied)
{
	char type[] = "order", id[] = "4711";
	struct bl_key key = make(type, id);

	memset(type, '?', 5);
	memset(id, '?', 4);
	cr_expect_str_eq(key.type, "order");
	cr_expect_str_eq(key.id, "4711");
	cr_expect_eq(key.type_len, 5);
	cr_expect_eq(key.id_len, 4);
}

Test(key, some_types_are_reserved)
{
	static const char *const refused[] = {"bizlock1", "bizlock_", "bizlockx"};
	static const char *const fine[] = {"bizlock", "bizloc", "Bizlock1", "a.bizlock"};
	struct bl_err err;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		struct bl_key key = make(refused[i], "1");

		bl_err_clear(&err);
		cr_expect_eq(bl_key_check_taken(&key, &err), BIZLOCK_INVALID);
		cr_expect(strstr(err.msg, "reserved"), "%s", err.msg);
	}
	for (size_t i = 0; i < sizeof(fine) / sizeof(*fine); i++) {
		struct bl_key key = make(fine[i], "1");

		cr_expect_eq(bl_key_check_taken(&key, &err), BIZLOCK_OK);
	}
}

Test(key, limits_are_exact)
{
	static const struct {
		size_t type, id;
		const char *wrong; /* NULL: fine */
	} rows[] = {
	        {1, 1, NULL},
	        {64, 128, NULL},
	        {65, 128, "biz_type is longer than 64 bytes"},
	        {64, 129, "biz_id is longer than 128 bytes"},
	        {65, 129, "biz_type is longer than 64 bytes"},
	        {300, 1, "biz_type is longer than 64 bytes"},
	        {1, 300, "biz_id is longer than 128 bytes"},
	        {0, 1, "biz_type is empty: 1 to 64 bytes are needed"},
	        {1, 0, "biz_id is empty: 1 to 128 bytes are needed"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bizlock_key raw = {long_text(rows[i].type, ""), long_text(rows[i].id, "")};
		struct bl_key key;
		struct bl_err err;
		int rc;

		bl_err_clear(&err);
		rc = bl_key_make(&key, raw, &err);
		cr_expect_eq(rc, rows[i].wrong ? BIZLOCK_INVALID : BIZLOCK_OK, "row %zu", i);
		cr_expect_eq(err.code, rc);
		cr_expect_str_eq(err.msg, rows[i].wrong ? rows[i].wrong : "");
		if (rc == BIZLOCK_OK) {
			cr_expect_str_eq(key.type, raw.biz_type);
			cr_expect_str_eq(key.id, raw.biz_id);
		}
	}
}

/* Limits are bytes; a character that straddles one makes the part too long. */
Test(key, limits_count_bytes_not_characters)
{
	bizlock_key fits = {long_text(62, "\xc3\xa1"), long_text(124, "\xf0\x9f\x94\x92")};
	bizlock_key over = {"t", long_text(127, "\xc3\xa1")};
	struct bl_key key;
	struct bl_err err;

	cr_expect_eq(bl_key_make(&key, fits, &err), BIZLOCK_OK);
	cr_expect_eq(bl_key_make(&key, over, &err), BIZLOCK_INVALID);
}

Test(key, null_and_bad_utf8_are_told_apart_by_part)
{
	static const struct {
		bizlock_key key;
		const char *msg;
	} rows[] = {
	        {{NULL, "1"}, "biz_type is NULL"},
	        {{"t", NULL}, "biz_id is NULL"},
	        {{NULL, NULL}, "biz_type is NULL"},
	        {{"t\xff", "1"}, "biz_type is not valid UTF-8"},
	        {{"t", "\xc3"}, "biz_id is not valid UTF-8"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct bl_key key;
		struct bl_err err;

		cr_expect_eq(bl_key_make(&key, rows[i].key, &err), BIZLOCK_INVALID);
		cr_expect_str_eq(err.msg, rows[i].msg);
	}
}

/* Any two of these are two locks: quotes and wildcards are data. */
Test(key, keys_that_differ_in_any_byte_differ)
{
	static const bizlock_key raw[] = {
	        {"t", "a"},         {"t", "A"},        {"t", "a "},
	        {"t", " a"},        {"t", "\xc3\xa1"}, {"T", "a"},
	        {"ta", "b"},        {"t", "ab"},       {"ab", "c"},
	        {"a", "bc"},        {"a", "b"},        {"b", "a"},
	        {"t", "a\xcc\x81"}, {"t", "a'"},       {"t", "a\\"},
	        {"t", "a%"},        {"t", "a\n"},      {"t", "\xf0\x9f\x94\x92"},
	        {"t ", "a"},        {"t", "0"},        {"a", "x\001b"},
	        {"a\003x", "b"},
	};
	size_t n = sizeof(raw) / sizeof(*raw);

	/* if only the id's length were hashed, the last two would be one */
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < n; j++) {
			struct bl_key a = make(raw[i].biz_type, raw[i].biz_id);
			struct bl_key b = make(raw[j].biz_type, raw[j].biz_id);

			cr_expect_eq(bl_key_equal(&a, &b), i == j, "%zu and %zu", i, j);
			cr_expect_eq(a.hash == b.hash, i == j, "hash of %zu and %zu", i, j);
		}
	}
}

/* Keys with the same hash are different locks. */
Test(key, equality_looks_at_bytes_not_at_the_hash)
{
	static const bizlock_key raw[] = {
	        {"t", "a"}, {"t", "b"}, {"u", "a"}, {"t", "ab"}, {"tu", "a"}};
	size_t n = sizeof(raw) / sizeof(*raw);

	for (size_t i = 0; i < n * n; i++) {
		struct bl_key a = make(raw[i / n].biz_type, raw[i / n].biz_id);
		struct bl_key b = make(raw[i % n].biz_type, raw[i % n].biz_id);

		b.hash = a.hash;
		cr_expect_eq(bl_key_equal(&a, &b), i / n == i % n, "%zu and %zu", i / n, i % n);
	}
}

/* The low bits choose a bucket: numbered keys must spread over them. */
Test(key, hashes_spread_over_buckets)
{
	unsigned filled[64] = {0};
	char id[16];

	for (unsigned i = 0; i < 6400; i++) {
		snprintf(id, sizeof(id), "%u", i);
		filled[make("order", id).hash % 64]++;
	}
	for (unsigned i = 0; i < 64; i++)
		cr_expect(filled[i] > 40 && filled[i] < 180, "bucket %u: %u", i, filled[i]);
}

Test(key, type_and_note_checks)
{
	struct bl_err err;

	cr_expect_eq(bl_type_check("order", &err), BIZLOCK_OK);
	cr_expect_eq(bl_type_check(long_text(64, ""), &err), BIZLOCK_OK);
	cr_expect_eq(bl_type_check(long_text(65, ""), &err), BIZLOCK_INVALID);
	cr_expect_eq(bl_type_check(NULL, &err), BIZLOCK_INVALID);
	cr_expect_eq(bl_type_check("", &err), BIZLOCK_INVALID);

	cr_expect_eq(bl_note_check(NULL, &err), BIZLOCK_OK);
	cr_expect_eq(bl_note_check("", &err), BIZLOCK_OK);
	cr_expect_eq(bl_note_check("it's 100 % \xf0\x9f\x94\x92", &err), BIZLOCK_OK);
	cr_expect_eq(bl_note_check(long_text(255, ""), &err), BIZLOCK_OK);
	cr_expect_eq(bl_note_check(long_text(256, ""), &err), BIZLOCK_INVALID);
	cr_expect_str_eq(err.msg, "note is longer than 255 bytes");
	cr_expect_eq(bl_note_check("\xed\xa0\x80", &err), BIZLOCK_INVALID);
	cr_expect_str_eq(err.msg, "note is not valid UTF-8");
}
