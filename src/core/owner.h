/* The owner of a hold: `name@pid.nonce@host`, where name is a thread's id or was
 * chosen by the caller. Within the process owners are told apart by thread serial or
 * by name, so that a reused thread id is not taken for its predecessor. */
#ifndef BL_CORE_OWNER_H
#define BL_CORE_OWNER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BL_OWNER_MAX 191 /* the column's width */

/* The part that all owners of a client share. */
struct bl_process {
	int64_t pid;
	char suffix[128]; /* "@pid.nonce@host" */
};

/* nonce: 8 random bytes. host is cut to 64 bytes; bytes outside
 * [A-Za-z0-9._-] become '_'; empty or NULL becomes "localhost". */
void bl_process_make(struct bl_process *ret, int64_t pid, const uint8_t nonce[8], const char *host);

struct bl_owner {
	uint64_t thread; /* serial; 0: a named owner */
	uint8_t name_len;
	char name[BIZLOCK_OWNER_NAME_MAX + 1];
};

/* The owner of an exported hold: this, 16 random hexadecimal digits, and the suffix of the client
 * that exported it. No other owner may have such a name: everybody can read owners and fences, and
 * could with them import a lock that nobody has exported. */
#define BL_OWNER_EXPORT "export-"

/* Does a name, or a stored owner, begin with such a name? *ret_len: the bytes of that beginning. */
bool bl_owner_is_export(const char *text, size_t *ret_len);

/* name NULL: the calling thread. INVALID: empty, over 64 bytes, a byte that is not printable
 * ASCII, a space or '@', digits alone (they are threads), or the name of an exported hold. */
int bl_owner_make(struct bl_owner *ret, const char *name, struct bl_err *err);

bool bl_owner_equal(const struct bl_owner *a, const struct bl_owner *b);

/* The owner as the row stores it. */
void bl_owner_full(const struct bl_owner *o, const struct bl_process *p,
                   char ret[BL_OWNER_MAX + 1]);

#endif
