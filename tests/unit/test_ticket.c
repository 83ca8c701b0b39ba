#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "core/ticket.h"

#define OWNER "export-0123456789abcdef@4711.0123456789abcdef@web-1"

/* As somebody would write it who knows how: with the right CHECK. */
static int read_with(const char *head, const char *rest, struct bl_ticket *ret)
{
	struct bl_hash hash = bl_hash_start();
	char text[1024], hex[33];
	struct bl_err err;

	bl_hash_add(&hash, rest, strlen(rest));
	bl_hash_hex(&hash, hex);
	snprintf(text, sizeof(text), "%s:%s:%s", head, hex, rest);
	return bl_ticket_read(text, ret, &err);
}

static int read_forged(const char *rest, struct bl_ticket *ret)
{
	return read_with("bizlock1", rest, ret);
}

Test(ticket, what_was_written_is_read)
{
	struct bl_ticket ticket = {.fence = 7, .depth = 2, .lease_ms = 30000, .owner = OWNER}, got;
	char text[BIZLOCK_EXPORT_MAX];
	struct bl_err err;

	bl_key_make(&ticket.key, (bizlock_key){"order", "4711"}, &err);
	cr_assert_eq(bl_ticket_write(&ticket, text, sizeof(text), &err), BIZLOCK_OK);
	cr_expect_str_eq(text + 42, "7:2:30000:0:6f72646572:34373131:" OWNER);
	cr_assert_eq(bl_ticket_read(text, &got, &err), BIZLOCK_OK);
	cr_expect(bl_key_equal(&got.key, &ticket.key));
	cr_expect_eq(got.fence, 7);
	cr_expect_eq(got.depth, 2);
	cr_expect_eq(got.lease_ms, 30000);
	cr_expect_eq(got.min_hold_ms, 0);
	cr_expect_str_eq(got.owner, OWNER);
}

Test(ticket, numbers_up_to_their_limits)
{
	struct bl_ticket got;

	cr_expect_eq(
	        read_forged("18446744073709551615:1000000:86400000:4294967295:6b:6b:" OWNER, &got),
	        BIZLOCK_OK);
	cr_expect_eq(got.fence, UINT64_MAX);
	cr_expect_eq(got.depth, BIZLOCK_DEPTH_MAX);
	cr_expect_eq(got.lease_ms, BIZLOCK_LEASE_MAX_MS);
	cr_expect_eq(got.min_hold_ms, UINT32_MAX);
}

/* There is one text for a ticket: what would not be written so is not read. */
Test(ticket, what_is_written_otherwise_is_refused)
{
	static const char *const rows[] = {
	        "07:1:30000:0:6b:6b:" OWNER,     "7:01:30000:0:6b:6b:" OWNER,
	        "7:1:030000:0:6b:6b:" OWNER,     "7:1:30000:00:6b:6b:" OWNER,
	        "+7:1:30000:0:6b:6b:" OWNER,     " 7:1:30000:0:6b:6b:" OWNER,
	        "7:1:30000:0:6B:6b:" OWNER,      "7:1:30000:0:6b:6b:" OWNER " ",
	        "7:1:30000:0:6b:6b:" OWNER "\n",
	};
	struct bl_ticket got;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(read_forged(rows[i], &got), BIZLOCK_INVALID, "%s", rows[i]);
}

Test(ticket, what_nobody_can_hold_is_refused)
{
	static const char *const rows[] = {
	        "",
	        "0:1:30000:0:6b:6b:" OWNER,
	        "18446744073709551616:1:30000:0:6b:6b:" OWNER,
	        "7:0:30000:0:6b:6b:" OWNER,
	        "7:1000001:30000:0:6b:6b:" OWNER,
	        "7:1:99:0:6b:6b:" OWNER,
	        "7:1:86400001:0:6b:6b:" OWNER,
	        "7:1:30000:4294967296:6b:6b:" OWNER,
	        "7:1:30000:0::6b:" OWNER,
	        "7:1:30000:0:6b6:6b:" OWNER,
	        "7:1:30000:0:00:6b:" OWNER,
	        "7:1:30000:0:6b:ff:" OWNER,
	        "7:1:30000:0:6b:6b:job-7@4711.0123456789abcdef@web-1",
	        "7:1:30000:0:6b:6b:export-0123456789abcdef",
	        "7:1:30000:0:6b:6b",
	};
	struct bl_ticket got, before;

	memset(&got, 'x', sizeof(got));
	before = got;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		cr_expect_eq(read_forged(rows[i], &got), BIZLOCK_INVALID, "%s", rows[i]);
	cr_expect_eq(memcmp(&got, &before, sizeof(got)), 0);
}

Test(ticket, one_of_a_shared_lock_names_its_slot_and_limit)
{
	struct bl_ticket ticket = {.fence = 7, .depth = 1, .lease_ms = 30000, .owner = OWNER}, got;
	static const uint32_t slots[] = {1, 3, UINT32_MAX - 1}, limits[] = {1, 9999999, 0};
	char text[BIZLOCK_EXPORT_MAX];
	struct bl_err err;

	bl_key_make(&ticket.key, (bizlock_key){"order", "4711"}, &err);
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++) {
		ticket.key.slot = slots[i];
		ticket.limit = limits[i];
		cr_assert_eq(bl_ticket_write(&ticket, text, sizeof(text), &err), BIZLOCK_OK);
		cr_assert_eq(strncmp(text, "bizlock2:", 9), 0);
		cr_assert_eq(bl_ticket_read(text, &got, &err), BIZLOCK_OK);
		cr_expect(bl_key_equal(&got.key, &ticket.key));
		cr_expect_eq(got.key.slot, slots[i]);
		cr_expect_eq(got.limit, limits[i]);
		cr_expect_eq(got.fence, 7);
	}
}

Test(ticket, each_kind_has_its_fields)
{
	struct bl_ticket got;

	static const char *const wrong[] = {
	        "7:1:30000:0:6b:6b:" OWNER,     "2:7:1:30000:0:6b:6b:" OWNER,
	        "0:4:7:1:30000:0:6b:6b:" OWNER, "4294967296:0:7:1:30000:0:6b:6b:" OWNER,
	        "5:4:7:1:30000:0:6b:6b:" OWNER, "2:10000000:7:1:30000:0:6b:6b:" OWNER,
	};

	cr_expect_eq(read_with("bizlock2", "2:4:7:1:30000:0:6b:6b:" OWNER, &got), BIZLOCK_OK);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		cr_expect_eq(read_with("bizlock2", wrong[i], &got), BIZLOCK_INVALID, "%s",
		             wrong[i]);
	cr_expect_eq(read_with("bizlock1", "0:7:1:30000:0:6b:6b:" OWNER, &got), BIZLOCK_INVALID);
	cr_expect_eq(read_with("bizlock3", "7:1:30000:0:6b:6b:" OWNER, &got), BIZLOCK_INVALID);
}
