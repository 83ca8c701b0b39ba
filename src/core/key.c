#include "core/key.h"

#include <string.h>

#include "base/hash.h"
#include "base/utf8.h"
#include "bizlock_ops.h"

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

static uint64_t hash_part(const char *text, size_t max)
{
	uint64_t hash = BL_HASH64_START;

	for (size_t i = 0; i < max && text[i]; i++)
		hash = bl_hash64_add(hash, (unsigned char)text[i]);
	return hash;
}

/* Each part has a hash of its own, so that the processor computes both in parallel. */
uint64_t bl_key_hash(bizlock_key key)
{
	return bl_hash64_mix(hash_part(key.biz_type, BIZLOCK_TYPE_MAX)) ^
	       hash_part(key.biz_id, BIZLOCK_ID_MAX);
}

static uint8_t copy_part(char *to, const char *text, size_t max)
{
	size_t len = strnlen(text, max);

	memcpy(to, text, len);
	to[len] = '\0';
	return (uint8_t)len;
}

int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err)
{
	int rc = bl_type_check(key.biz_type, err);

	if (rc == BIZLOCK_OK)
		rc = check_part("biz_id", key.biz_id, BIZLOCK_ID_MAX, err);
	if (rc != BIZLOCK_OK)
		return rc;
	ret->hash = bl_key_hash(key);
	ret->slot = 0;
	ret->type_len = copy_part(ret->type, key.biz_type, BIZLOCK_TYPE_MAX);
	ret->id_len = copy_part(ret->id, key.biz_id, BIZLOCK_ID_MAX);
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

/* Reserved for later versions of bizlock: a program that used such a type by chance would keep them
 * out. */
int bl_key_check_taken(const struct bl_key *key, struct bl_err *err)
{
	static const char ours[] = "bizlock";

	if (strncmp(key->type, ours, strlen(ours)) != 0 ||
	    strcmp(key->type, BIZLOCK_REAPER_TYPE) == 0)
		return BIZLOCK_OK;
	return bl_err_set(err, BIZLOCK_INVALID,
	                  "biz_type %s is reserved: all that begin with %s are bizlock's own",
	                  key->type, ours);
}

int bl_note_check(const char *note, struct bl_err *err)
{
	return note ? check_text("note", note, BIZLOCK_NOTE_MAX, err) : BIZLOCK_OK;
}
