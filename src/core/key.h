/* The key of a lock: checked, copied, hashed, compared; and checks of types and notes. */
#ifndef BL_CORE_KEY_H
#define BL_CORE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bl_key {
	uint64_t hash; /* of both parts */
	uint32_t slot; /* of its row: 0 for an exclusive lock, from 1 on for a shared one.
	                  Not compared */
	uint8_t type_len, id_len;
	char type[BIZLOCK_TYPE_MAX + 1];
	char id[BIZLOCK_ID_MAX + 1];
};

/* A slot of a shared lock that is not chosen yet. */
#define BL_SLOT_ANY UINT32_MAX

/* Slot 0. INVALID: a part is NULL, empty, too long or not UTF-8; the message
 * says which. */
int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err);

/* The hash of a key with these texts, which need not be checked, but are not NULL. */
uint64_t bl_key_hash(bizlock_key key);

/* Byte for byte. */
bool bl_key_equal(const struct bl_key *a, const struct bl_key *b);

/* A biz_type alone, as a filter. INVALID as above. */
int bl_type_check(const char *biz_type, struct bl_err *err);

/* To be called before a lock is taken. INVALID: its biz_type is reserved. */
int bl_key_check_taken(const struct bl_key *key, struct bl_err *err);

/* NULL is fine. INVALID: over BIZLOCK_NOTE_MAX bytes, or not UTF-8. */
int bl_note_check(const char *note, struct bl_err *err);

#endif
