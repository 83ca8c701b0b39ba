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

/* Copies a part to `to`, which has room for max + 1 bytes, and hashes it: in one loop, because
 * re-entry in memory is short enough for each look at the text to show. */
static int take_part(char *to, size_t max, const char *what, const char *text, uint8_t *ret_len,
                     uint64_t *ret_hash, struct bl_err *err)
{
	uint64_t hash = BL_HASH64_START;
	unsigned char bits = 0;
	size_t len = 0;

	if (!text)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is NULL", what);
	for (; len <= max && (to[len] = text[len]) != '\0'; len++) {
		hash = bl_hash64_add(hash, (unsigned char)text[len]);
		bits |= (unsigned char)text[len];
	}
	if (len == 0)
		return bl_err_set(err, BIZLOCK_INVALID, "%s is empty: 1 to %zu bytes are needed",
		                  what, max);
	if ((len > max || bits & 0x80) && check_text(what, text, max, err) != BIZLOCK_OK)
		return err->code;
	*ret_len = (uint8_t)len;
	*ret_hash = hash;
	return BIZLOCK_OK;
}

/* Each part has a hash of its own, so that neither has to wait for the other one. */
int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err)
{
	uint64_t type_hash, id_hash;
	int rc = take_part(ret->type, BIZLOCK_TYPE_MAX, "biz_type", key.biz_type, &ret->type_len,
	                   &type_hash, err);

	if (rc == BIZLOCK_OK)
		rc = take_part(ret->id, BIZLOCK_ID_MAX, "biz_id", key.biz_id, &ret->id_len,
		               &id_hash, err);
	if (rc != BIZLOCK_OK)
		return rc;
	ret->shared = false;
	ret->slot = 0;
	ret->hash = bl_hash64_mix(type_hash) ^ id_hash;
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
	char type[BIZLOCK_TYPE_MAX + 1];
	uint64_t hash;
	uint8_t len;

	return take_part(type, BIZLOCK_TYPE_MAX, "biz_type", biz_type, &len, &hash, err);
}

int bl_note_check(const char *note, struct bl_err *err)
{
	return note ? check_text("note", note, BIZLOCK_NOTE_MAX, err) : BIZLOCK_OK;
}
