/* A lock's key, checked and copied. */
#ifndef BL_CORE_KEY_H
#define BL_CORE_KEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct bl_key {
	uint64_t hash; /* of both parts */
	bool shared;   /* of a shared lock, which is not the plain one of that name */
	uint32_t slot; /* that of its row. Not compared */
	uint8_t type_len, id_len;
	char type[BIZLOCK_TYPE_MAX + 1];
	char id[BIZLOCK_ID_MAX + 1];
};

/* The row of a plain lock. */
#define BL_SLOT_PLAIN UINT32_MAX

/* Makes the key of a plain lock. INVALID: a part is NULL, empty, too long or not UTF-8; the message
 * says which. */
int bl_key_make(struct bl_key *ret, bizlock_key key, struct bl_err *err);

/* Makes *key name the shared lock. */
void bl_key_share(struct bl_key *key, uint32_t slot);

/* The hash that a key of these texts has. They need not be checked, but are not NULL. */
uint64_t bl_key_hash(bizlock_key key);

/* Byte for byte. Of one name there are two keys, a plain and a shared one. */
bool bl_key_equal(const struct bl_key *a, const struct bl_key *b);
bool bl_key_same_name(const struct bl_key *a, const struct bl_key *b);

/* A biz_type alone, as a filter. INVALID as above. */
int bl_type_check(const char *biz_type, struct bl_err *err);

/* Before a lock is taken. INVALID: its biz_type is reserved. */
int bl_key_check_taken(const struct bl_key *key, struct bl_err *err);

/* NULL is fine. INVALID: over BIZLOCK_NOTE_MAX bytes, or not UTF-8. */
int bl_note_check(const char *note, struct bl_err *err);

#endif
