#include "core/key.h"

#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"

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
	/* Re-entry in memory is short enough for the rest of it, 200 bytes, to show. */
	ret->shared = false;
	ret->slot = 0;
	ret->type_len = (uint8_t)strlen(key.biz_type);
	ret->id_len = (uint8_t)strlen(key.biz_id);
	memcpy(ret->type, key.biz_type, ret->type_len + 1u);
	memcpy(ret->id, key.biz_id, ret->id_len + 1u);
	ret->hash = hash_parts(ret);
	return BIZLOCK_OK;
}

bool bl_key_same_name(const struct bl_key *a, const struct bl_key *b)
{
	return a->hash == b->hash && a->type_len == b->type_len && a->id_len == b->id_len &&
	       memcmp(a->type, b->type, a->type_len) == 0 && memcmp(a->id, b->id, a->id_len) == 0;
}

bool bl_key_equal(const struct bl_key *a, const struct bl_key *b)
{
	return a->shared == b->shared && bl_key_same_name(a, b);
}

int bl_type_check(const char *biz_type, struct bl_err *err)
{
	return check_part("biz_type", biz_type, BIZLOCK_TYPE_MAX, err);
}

int bl_note_check(const char *note, struct bl_err *err)
{
	return note ? check_text("note", note, BIZLOCK_NOTE_MAX, err) : BIZLOCK_OK;
}
