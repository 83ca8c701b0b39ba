#include "core/ticket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"

#define PLAIN "bizlock1:"
#define SHARED "bizlock2:"
#define BEGIN_LEN strlen(PLAIN)

#define HEAD (BEGIN_LEN + 33) /* with the hash and its colon */

static void check_sum(const char *rest, char ret[33])
{
	struct bl_hash hash = bl_hash_start();

	bl_hash_add(&hash, rest, strlen(rest));
	bl_hash_hex(&hash, ret);
}

static bool checked(const char *text)
{
	char hash[33];

	if (strnlen(text, HEAD) < HEAD || text[HEAD - 1] != ':')
		return false;
	check_sum(text + HEAD, hash);
	return memcmp(text + BEGIN_LEN, hash, 32) == 0;
}

int bl_ticket_write(const struct bl_ticket *t, char *ret, size_t size, struct bl_err *err)
{
	struct bl_buf text = BL_BUF_INIT(BIZLOCK_EXPORT_MAX);
	char hash[33];
	int rc = BIZLOCK_OK;

	if (t->key.slot > 0)
		bl_buf_addf(&text, "%" PRIu32 ":%" PRIu32 ":", t->key.slot, t->limit);
	bl_buf_addf(&text, "%" PRIu64 ":%" PRIu32 ":%" PRIu32 ":%" PRIu32 ":", t->fence, t->depth,
	            t->lease_ms, t->min_hold_ms);
	bl_buf_add_hex(&text, t->key.type, t->key.type_len);
	bl_buf_adds(&text, ":");
	bl_buf_add_hex(&text, t->key.id, t->key.id_len);
	bl_buf_addf(&text, ":%s", t->owner);
	if (text.failed)
		rc = bl_err_set(err, BIZLOCK_NOMEM, "out of memory");
	else if (text.len + HEAD >= size)
		rc = bl_err_set(err, BIZLOCK_LIMIT, "size is %zu: %zu is needed", size,
		                text.len + HEAD + 1);
	if (rc == BIZLOCK_OK) {
		check_sum(text.data, hash);
		snprintf(ret, size, "%s%s:%s", t->key.slot > 0 ? SHARED : PLAIN, hash, text.data);
	}
	bl_buf_free(&text);
	return rc;
}

/* A decimal number as bl_ticket_write() writes it: no sign, no blanks, no leading zeros. */
static bool read_number(const char **at, uint64_t max, uint64_t *ret)
{
	uint64_t number = 0;
	const char *c = *at;

	if (c[0] == '0' && c[1] != ':')
		return false;
	for (; *c >= '0' && *c <= '9'; c++) {
		uint64_t digit = (uint64_t)(*c - '0');

		if (number > (max - digit) / 10)
			return false;
		number = 10 * number + digit;
	}
	if (c == *at || *c != ':')
		return false;
	*at = c + 1;
	*ret = number;
	return true;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(const char **at, char *ret, size_t size)
{
	const char *c = *at;
	size_t len = 0;

	for (; *c != ':'; c += 2) {
		int high = digit_of(c[0]), low = high < 0 ? -1 : digit_of(c[1]);

		if (low < 0 || len + 1 >= size || high + low == 0)
			return false;
		ret[len++] = (char)(high * 16 + low);
	}
	ret[len] = '\0';
	*at = c + 1;
	return true;
}

static bool read_owner(const char *at, char ret[BL_OWNER_MAX + 1])
{
	size_t len = strnlen(at, BL_OWNER_MAX + 1), head;

	if (len > BL_OWNER_MAX || !bl_owner_is_export(at, &head) || at[head] != '@')
		return false;
	for (size_t i = 0; i < len; i++)
		if (at[i] < '!' || at[i] > '~')
			return false;
	memcpy(ret, at, len + 1);
	return true;
}

static bool read_fields(const char *at, struct bl_ticket *ret, bizlock_key *ret_key, char *type,
                        char *id)
{
	uint64_t depth, lease_ms, min_hold_ms;

	if (!read_number(&at, UINT64_MAX, &ret->fence) ||
	    !read_number(&at, BIZLOCK_DEPTH_MAX, &depth) ||
	    !read_number(&at, BIZLOCK_LEASE_MAX_MS, &lease_ms) ||
	    !read_number(&at, UINT32_MAX, &min_hold_ms) ||
	    !read_hex(&at, type, BIZLOCK_TYPE_MAX + 1) || !read_hex(&at, id, BIZLOCK_ID_MAX + 1) ||
	    !read_owner(at, ret->owner))
		return false;
	ret->depth = (uint32_t)depth;
	ret->lease_ms = (uint32_t)lease_ms;
	ret->min_hold_ms = (uint32_t)min_hold_ms;
	*ret_key = (bizlock_key){type, id};
	return ret->fence > 0 && depth > 0 && lease_ms >= BIZLOCK_LEASE_MIN_MS;
}

static bool read_slot(const char **at, uint32_t *ret_slot, uint32_t *ret_limit)
{
	uint64_t slot, limit;

	if (!read_number(at, BL_SLOT_ANY - 1, &slot) || !read_number(at, BIZLOCK_LIMIT_MAX, &limit))
		return false;
	*ret_slot = (uint32_t)slot;
	*ret_limit = (uint32_t)limit;
	return slot > 0 && (limit == 0 || slot <= limit);
}

static bool read_ticket(const char *text, struct bl_ticket *ret, struct bl_err *err)
{
	char type[BIZLOCK_TYPE_MAX + 1], id[BIZLOCK_ID_MAX + 1];
	bool shared = strncmp(text, SHARED, BEGIN_LEN) == 0;
	const char *at = text + HEAD;
	uint32_t slot = 0;
	bizlock_key key;

	ret->limit = 0;
	if ((!shared && strncmp(text, PLAIN, BEGIN_LEN) != 0) || !checked(text) ||
	    (shared && !read_slot(&at, &slot, &ret->limit)) ||
	    !read_fields(at, ret, &key, type, id) || bl_key_make(&ret->key, key, err) != BIZLOCK_OK)
		return false;
	ret->key.slot = slot;
	return true;
}

int bl_ticket_read(const char *text, struct bl_ticket *ret, struct bl_err *err)
{
	struct bl_ticket ticket;

	if (!text || !read_ticket(text, &ticket, err))
		return bl_err_set(err, BIZLOCK_INVALID, "this is not what bizlock_export() wrote");
	*ret = ticket;
	return BIZLOCK_OK;
}
