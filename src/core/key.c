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

/* Its length, in one loop with what only texts beyond ASCII need: re-entry in memory is short
 * enough for each look at a key to show. */
static int check_part(const char *what, const char *text, size_t max, uint8_t *ret_len,
                      struct bl_err *err)
{
	unsigned char bits = 0;
	size_t len = 0;

	if (!text)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is NULL", what);
	for (; len <= max && text[len]; len++)
		bits |= (unsigned char)text[len];
	if (len == 0)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is empty: 1 to %zu bytes are needed",
		                  what, max);
	*ret_len = (uint8_t)len;
	return len > max || bits & 0x80 ? check_text(what, text, max, err) : BIZLOCK_OK;
}

/* Each part has a hash of its own, so that neither waits for the other. */
static uint64_t copy_part(char *to, const char *text, size_t len)
{
	uint64_t hash = BL_HASH64_START;

	for (size_t i = 0; i < len; i++) {
		to[i] = text[i];
		hash = bl_hash64_add(hash, (unsigned char)text[i]);
	}
	to[len] = '\0';
	return hash;
}

int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err)
{
	uint8_t type_len, id_len;
	int rc = check_part("biz_type", key.biz_type, BIZLOCK_TYPE_MAX, &type_len, err);

	if (rc == BIZLOCK_OK)
		rc = check_part("biz_id", key.biz_id, BIZLOCK_ID_MAX, &id_len, err);
	if (rc != BIZLOCK_OK)
		return rc;
	ret->shared = false;
	ret->slot = 0;
	ret->type_len = type_len;
	ret->id_len = id_len;
	ret->hash = bl_hash64_mix(copy_part(ret->type, key.biz_type, type_len)) ^
	            copy_part(ret->id, key.biz_id, id_len);
	return BIZLOCK_OK;
}

int bl_type_check(const char *biz_type, struct bl_err *err)
{
	uint8_t len;

	return check_part("biz_type", biz_type, BIZLOCK_TYPE_MAX, &len, err);
}

int bl_note_check(const char *note, struct bl_err *err)
{
	return note ? check_text("note", note, BIZLOCK_NOTE_MAX, err) : BIZLOCK_OK;
}
