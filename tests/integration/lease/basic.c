/* Acquire and release, and the row in between. */
#define _GNU_SOURCE 1
#include <stdio.h>

#include "cr_test.h"

TestSuite(basic, .init = world_begin, .fini = world_end, .timeout = 240);

Test(basic, a_grant_says_what_was_granted)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	struct row row;

	expect(OK, b, acquire(b, "4711", .lease_ms = 20000, .grant = &grant));
	row = row_of(&world, KEY("4711"));
	cr_assert(row.there);
	cr_assert_gt(grant.fence, 0);
	cr_assert_eq(grant.fence, row.fence);
	cr_assert_eq(grant.depth, 1);
	cr_assert_eq(row.depth, 1);
	cr_assert_eq(grant.lease_ms, 20000);
	cr_assert_eq(grant.flags, 0);
	cr_assert(row.left_us > 0 && row.left_us <= 20000 * 1000, "left: %lld us", row.left_us);
}

Test(basic, the_default_lease_is_an_option)
{
	bizlock *b = client(OPTIONS("lease_ms", "23456"));
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	expect(OK, b, acquire(b, "k", .grant = &grant));
	cr_assert_eq(grant.lease_ms, 23456);
}

Test(basic, without_options_the_lease_is_thirty_seconds)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	long long left;

	expect(OK, b, bizlock_acquire(b, KEY("k"), NULL, &grant));
	left = row_of(&world, KEY("k")).left_us;
	cr_assert_eq(grant.lease_ms, 30000);
	cr_assert(left > 0 && left <= 30000 * 1000, "left: %lld us", left);
}

Test(basic, the_last_release_removes_the_row)
{
	bizlock *b = client(NULL);
	uint32_t depth = 99;

	expect(OK, b, acquire(b, "k"));
	expect(OK, b, bizlock_release(b, KEY("k"), NULL, &depth));
	cr_assert_eq(depth, 0);
	cr_assert(no_row(&world, KEY("k")));
	expect(OK, b, acquire(b, "k"));
}

Test(basic, note_and_times_are_stored)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	struct row row;

	opts.note = "nightly run";
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	row = row_of(&world, KEY("k"));
	cr_assert_str_eq(row.note, "nightly run");
	cr_assert_eq(db_number(world.admin,
	                       "SELECT ABS(TIMESTAMPDIFF(SECOND, gmt_create, UTC_TIMESTAMP(6)))"
	                       " < 60 AND gmt_modified >= gmt_create FROM biz_lock"),
	             1);
}

/* ---- keys are bytes ------------------------------------------------------- */

static const char *const lookalikes[] = {"a", "A", "a ", "\xc3\xa1"};

#define LOOKALIKES (sizeof(lookalikes) / sizeof(lookalikes[0]))

Test(basic, keys_that_differ_in_a_byte_are_different_locks)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	uint64_t fence = 0;

	for (size_t i = 0; i < LOOKALIKES; i++) {
		expect(OK, b, acquire(b, lookalikes[i], .grant = &grant));
		cr_assert_eq(grant.depth, 1, "'%s' was held already", lookalikes[i]);
		cr_assert_gt(grant.fence, fence);
		fence = grant.fence;
	}
	for (size_t i = 0; i < LOOKALIKES; i++) {
		expect(BUSY, stranger, acquire(stranger, lookalikes[i]));
		expect(OK, b, bizlock_release(b, KEY(lookalikes[i]), NULL, NULL));
		expect(OK, stranger, acquire(stranger, lookalikes[i]));
	}
}

Test(basic, each_of_them_has_a_holder_of_its_own)
{
	bizlock *b = client(NULL);
	char owner[16];

	for (size_t i = 0; i < LOOKALIKES; i++) {
		snprintf(owner, sizeof(owner), "holder-%zu", i);
		expect(OK, b, acquire_as(b, lookalikes[i], owner));
	}
	for (size_t i = 0; i < LOOKALIKES; i++) {
		snprintf(owner, sizeof(owner), "holder-%zu", (i + 1) % LOOKALIKES);
		expect(NOT_OWNER, b, bizlock_release(b, KEY(lookalikes[i]), owner, NULL));
		snprintf(owner, sizeof(owner), "holder-%zu", i);
		expect(OK, b, bizlock_release(b, KEY(lookalikes[i]), owner, NULL));
	}
}

Test(basic, types_differ_like_ids)
{
	bizlock *b = client(NULL);
	bizlock_grant grant = BIZLOCK_GRANT_INIT;

	for (size_t i = 0; i < LOOKALIKES; i++) {
		bizlock_key key = {lookalikes[i], "id"};

		expect(OK, b, bizlock_acquire(b, key, NULL, &grant));
		cr_assert_eq(grant.depth, 1, "'%s' was held already", lookalikes[i]);
	}
}

/* ("ab", "c") and ("a", "bc") are different keys, in every place where the two parts are joined. */
Test(basic, the_border_between_type_and_id_counts)
{
	bizlock *b = client(NULL);
	bizlock_key one = {"ab", "c"}, other = {"a", "bc"}, swapped = {"c", "ab"};

	expect(OK, b, bizlock_acquire(b, one, NULL, NULL));
	expect(NOT_OWNER, b, bizlock_release(b, other, NULL, NULL));
	expect(NOT_OWNER, b, bizlock_release(b, swapped, NULL, NULL));
	expect(OK, b, bizlock_acquire(b, other, NULL, NULL));
	expect(OK, b, bizlock_acquire(b, swapped, NULL, NULL));
	cr_assert_eq(all_rows(&world), 3);
}

Test(basic, the_longest_keys_work)
{
	bizlock *b = client(NULL), *stranger = client(NULL);
	char type[BIZLOCK_TYPE_MAX + 2] = "", id[BIZLOCK_ID_MAX + 2] = "";
	bizlock_key key = {type, id};

	memset(type, 't', BIZLOCK_TYPE_MAX);
	memset(id, 'i', BIZLOCK_ID_MAX);
	expect(OK, b, bizlock_acquire(b, key, NULL, NULL));
	id[BIZLOCK_ID_MAX - 1] = 'j';
	expect(OK, stranger, bizlock_acquire(stranger, key, NULL, NULL));
	expect(OK, stranger, bizlock_release(stranger, key, NULL, NULL));
	id[BIZLOCK_ID_MAX] = 'i';
	expect(INVALID, b, bizlock_acquire(b, key, NULL, NULL));
	expect_message(b, "128");
	id[BIZLOCK_ID_MAX] = '\0';
	type[BIZLOCK_TYPE_MAX] = 't';
	expect(INVALID, b, bizlock_acquire(b, key, NULL, NULL));
	expect_message(b, "64");
}

/* The limits count bytes, not characters: 32 emoji of 4 bytes fill an id. */
Test(basic, the_limits_are_bytes)
{
	bizlock *b = client(NULL);
	char id[BIZLOCK_ID_MAX + 5] = "";

	for (int i = 0; i < BIZLOCK_ID_MAX / 4; i++)
		memcpy(id + (size_t)4 * i, "\xf0\x9f\x94\x92", 5);
	expect(OK, b, acquire(b, id));
	expect(OK, b, bizlock_release(b, KEY(id), NULL, NULL));
	memcpy(id + BIZLOCK_ID_MAX, "x", 2);
	expect(INVALID, b, acquire(b, id));
}

/* ---- strings are data ----------------------------------------------------- */

static const char *const awkward[] = {
        "'; DROP TABLE biz_lock; --",
        "\"double\" and `back`",
        "back\\slash\\",
        "100%s of %d _ %",
        "\xf0\x9f\x94\x92 \xe2\x82\xac \xc3\xa9",
        "\x01\x1f\x7f tab\t new\nline",
        " x' 0x41 NULL ",
        "?, :name, /* */ #",
};

#define AWKWARD (sizeof(awkward) / sizeof(awkward[0]))

static int look(void *arg, const bizlock_info *info)
{
	const char *text = arg;

	cr_assert_str_eq(info->biz_type, text);
	cr_assert_str_eq(info->biz_id, text);
	cr_assert_str_eq(info->note, text);
	cr_assert_eq(info->depth, 2);
	return 0;
}

static long long exact_rows(const char *text)
{
	const char *literal = db_literal(text);

	return db_number(world.admin,
	                 "SELECT COUNT(*) FROM biz_lock WHERE HEX(biz_id) = HEX(%s)"
	                 " AND HEX(biz_type) = HEX(%s) AND HEX(note) = HEX(%s)",
	                 literal, literal, literal);
}

Test(basic, awkward_keys_and_notes_come_back_as_they_were)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	for (size_t i = 0; i < AWKWARD; i++) {
		bizlock_key key = {awkward[i], awkward[i]};

		opts.note = awkward[i];
		expect(OK, b, bizlock_acquire(b, key, &opts, NULL));
		expect(OK, b, bizlock_acquire(b, key, &opts, NULL));
		cr_assert_eq(exact_rows(awkward[i]), 1, "%s", awkward[i]);
		expect(OK, b, bizlock_each(b, awkward[i], look, (void *)awkward[i]));
		expect(OK, b, bizlock_renew(b, key, NULL, 0));
		expect(OK, b, bizlock_verify(b, key, NULL));
		expect(OK, b, bizlock_release(b, key, NULL, NULL));
		expect(OK, b, bizlock_release(b, key, NULL, NULL));
		cr_assert(no_row(&world, key), "%s", awkward[i]);
	}
}

Test(basic, an_empty_note_and_none_are_alike)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;

	expect(OK, b, bizlock_acquire(b, KEY("none"), &opts, NULL));
	opts.note = "";
	expect(OK, b, bizlock_acquire(b, KEY("empty"), &opts, NULL));
	cr_assert_eq(db_number(world.admin, "SELECT COUNT(*) FROM biz_lock WHERE HEX(note) = ''"),
	             2);
}

Test(basic, the_longest_note_is_stored_whole)
{
	bizlock *b = client(NULL);
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	char note[BIZLOCK_NOTE_MAX + 1] = "";

	memset(note, 'n', BIZLOCK_NOTE_MAX);
	opts.note = note;
	expect(OK, b, bizlock_acquire(b, KEY("k"), &opts, NULL));
	cr_assert_eq(db_number(world.admin, "SELECT LENGTH(note) FROM biz_lock"), BIZLOCK_NOTE_MAX);
}

static int copy_owner(void *arg, const bizlock_info *info)
{
	snprintf(arg, 192, "%s", info->owner);
	return 0;
}

Test(basic, awkward_named_owners_come_back_as_they_were)
{
	static const char *const owners[] = {"o'brien", "\"q\"",  "back\\slash\\",
	                                     "%s%n",    "a;b--c", "`tick`|~"};
	bizlock *b = client(NULL);
	char seen[192];

	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
		size_t length = strlen(owners[i]);

		expect(OK, b, acquire_as(b, "k", owners[i]));
		expect(OK, b, bizlock_each(b, NULL, copy_owner, seen));
		cr_assert(strncmp(seen, owners[i], length) == 0 && seen[length] == '@',
		          "owner '%s' became '%s'", owners[i], seen);
		expect(OK, b, bizlock_verify(b, KEY("k"), owners[i]));
		expect(OK, b, bizlock_release(b, KEY("k"), owners[i], NULL));
		cr_assert(no_row(&world, KEY("k")));
	}
}

Test(basic, the_longest_owner_fits)
{
	bizlock *b = client(NULL);
	char owner[BIZLOCK_OWNER_NAME_MAX + 1] = "";

	memset(owner, 'o', BIZLOCK_OWNER_NAME_MAX);
	expect(OK, b, acquire_as(b, "k", owner));
	expect(OK, b, bizlock_verify(b, KEY("k"), owner));
	expect(OK, b, bizlock_release(b, KEY("k"), owner, NULL));
}
