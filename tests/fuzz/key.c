/* core/key.h and base/utf8.h. The input is a biz_type, NUL, a biz_id, NUL, a note. */
#include "core/key.h"
#include "base/utf8.h"
#include "common/fuzz.h"

static bool fits(const char *text, size_t min, size_t max)
{
	size_t len = strlen(text);

	return len >= min && len <= max && fuzz_utf8(text, len);
}

static void check_key(const char *type, const char *id)
{
	bool good = fits(type, 1, BIZLOCK_TYPE_MAX) && fits(id, 1, BIZLOCK_ID_MAX);
	uint64_t hash = bl_key_hash((bizlock_key){type, id});
	struct bl_key key, again;
	struct bl_err err;
	int rc;

	fuzz_poison(&key, sizeof(key));
	rc = bl_key_make(&key, (bizlock_key){type, id}, &err);
	assert((rc == BIZLOCK_OK) == good);
	if (!good) {
		fuzz_check_error(&err, BIZLOCK_INVALID);
		assert(fuzz_poisoned(&key, sizeof(key)));
		return;
	}
	assert(key.hash == hash);
	assert(strcmp(key.type, type) == 0 && key.type_len == strlen(type));
	assert(strcmp(key.id, id) == 0 && key.id_len == strlen(id));
	assert(bl_key_make(&again, (bizlock_key){key.type, key.id}, &err) == BIZLOCK_OK);
	assert(bl_key_equal(&key, &again) && key.hash == again.hash);
	if (strcmp(type, id) != 0 && fits(id, 1, BIZLOCK_TYPE_MAX)) {
		assert(bl_key_make(&again, (bizlock_key){id, type}, &err) == BIZLOCK_OK);
		assert(!bl_key_equal(&key, &again));
	}
}

static void check_note(const char *note)
{
	struct bl_err err;
	int rc = bl_note_check(note, &err);

	assert((rc == BIZLOCK_OK) == fits(note, 0, BIZLOCK_NOTE_MAX));
	if (rc != BIZLOCK_OK)
		fuzz_check_error(&err, BIZLOCK_INVALID);
}

/* The whole input, without a NUL behind it. */
static void check_bytes(const uint8_t *data, size_t size)
{
	char *bytes = malloc(size ? size : 1);

	assert(bytes);
	if (size > 0)
		memcpy(bytes, data, size);
	assert(bl_utf8_valid(bytes, size) == fuzz_utf8(bytes, size));
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *type, *id, *note;

	check_bytes(data, size);
	type = fuzz_next(&data, &size, '\0');
	id = fuzz_next(&data, &size, '\0');
	note = fuzz_next(&data, &size, '\0');
	check_key(type, id);
	check_note(note);
	free(type);
	free(id);
	free(note);
	return 0;
}
