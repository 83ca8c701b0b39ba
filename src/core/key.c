#include "core/key.h"

#include <string.h>

#include "base/hash.h"

/* Bytes in the character that starts here; 0: none does. The second byte's
 * range is what rules out overlong forms, surrogates and U+110000 and up. */
static size_t character(const unsigned char *s, size_t left)
{
	unsigned char lead = s[0], low = 0x80, high = 0xbf;
	size_t len = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;

	if (len == 1)
		return 1;
	if (lead < 0xc2 || lead > 0xf4 || len > left)
		return 0;
	if (lead == 0xe0)
		low = 0xa0;
	else if (lead == 0xed)
		high = 0x9f;
	else if (lead == 0xf0)
		low = 0x90;
	else if (lead == 0xf4)
		high = 0x8f;
	if (s[1] < low || s[1] > high)
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	return len;
}

bool bl_utf8_valid(const char *s, size_t len)
{
	const unsigned char *at = (const unsigned char *)s;
	size_t step;

	for (; len > 0; at += step, len -= step) {
		step = character(at, len);
		if (step == 0)
			return false;
	}
	return true;
}

static int check_text(const char *what, const char *text, size_t max, struct bl_err *err)
{
	size_t len = strnlen(text, max + 1);

	if (len > max)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is longer than %zu bytes", what, max);
	if (!bl_utf8_valid(text, len))
		return bl_err_set(err, BIZLOCK_INVALID, "%s is not valid UTF-8", what);
	return BIZLOCK_OK;
}

static int check_part(const char *what, const char *text, size_t max, struct bl_err *err)
{
	if (!text)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is NULL", what);
	if (!text[0])
		return bl_err_set(err, BIZLOCK_INVALID, "%s is empty: 1 to %zu bytes are needed",
		                  what, max);
	return check_text(what, text, max, err);
}

static uint64_t hash_parts(const struct bl_key *key)
{
	uint64_t h = bl_hash64(BL_HASH64_START, &key->type_len, 1);

	h = bl_hash64(h, key->type, key->type_len);
	h = bl_hash64(h, &key->id_len, 1);
	return bl_hash64(h, key->id, key->id_len);
}

int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err)
{
	int rc = bl_type_check(key.biz_type, err);

	if (rc == BIZLOCK_OK)
		rc = check_part("biz_id", key.biz_id, BIZLOCK_ID_MAX, err);
	if (rc != BIZLOCK_OK)
		return rc;
	memset(ret, 0, sizeof(*ret));
	ret->type_len = (uint8_t)strlen(key.biz_type);
	ret->id_len = (uint8_t)strlen(key.biz_id);
	memcpy(ret->type, key.biz_type, ret->type_len);
	memcpy(ret->id, key.biz_id, ret->id_len);
	ret->hash = hash_parts(ret);
	return BIZLOCK_OK;
}

bool bl_key_equal(const struct bl_key *a, const struct bl_key *b)
{
	return a->hash == b->hash && a->type_len == b->type_len && a->id_len == b->id_len &&
	       memcmp(a->type, b->type, a->type_len) == 0 && memcmp(a->id, b->id, a->id_len) == 0;
}

int bl_type_check(const char *biz_type, struct bl_err *err)
{
	return check_part("biz_type", biz_type, BIZLOCK_TYPE_MAX, err);
}

int bl_note_check(const char *note, struct bl_err *err)
{
	return note ? check_text("note", note, BIZLOCK_NOTE_MAX, err) : BIZLOCK_OK;
}
