/* The ticket, which bizlock_export() writes and bizlock_import() reads.
 *     bizlock1:CHECK:FENCE:DEPTH:LEASE_MS:MIN_HOLD_MS:TYPE:ID:OWNER
 * and that of one that shares the lock:
 *     bizlock2:CHECK:SLOT:LIMIT:FENCE:DEPTH:LEASE_MS:MIN_HOLD_MS:TYPE:ID:OWNER
 * TYPE and ID in hexadecimal, so that the whole is one word whatever they are. CHECK
 * is a hash of what follows: a text that was cut off or mistyped is noticed. */
#ifndef BL_CORE_TICKET_H
#define BL_CORE_TICKET_H

#include "core/key.h"
#include "core/owner.h"

struct bl_ticket {
	struct bl_key key;
	uint64_t fence;
	uint32_t limit; /* of a lock that is shared; 0: none */
	uint32_t depth, lease_ms, min_hold_ms;
	char owner[BL_OWNER_MAX + 1]; /* as it stands in the row */
};

/* LIMIT: size is too small; nothing is written. */
int bl_ticket_write(const struct bl_ticket *t, char *ret, size_t size, struct bl_err *err);

/* INVALID: not such a text. */
int bl_ticket_read(const char *text, struct bl_ticket *ret, struct bl_err *err);

#endif
