/* The ticket, which bizlock_export() writes and bizlock_import() reads.
 * Of an exclusive lock:
 *     bizlock1:CHECK:FENCE:DEPTH:LEASE_MS:MIN_HOLD_MS:TYPE:ID:OWNER
 * Of a shared lock:
 *     bizlock2:CHECK:SLOT:LIMIT:FENCE:DEPTH:LEASE_MS:MIN_HOLD_MS:TYPE:ID:OWNER
 * TYPE and ID are in hexadecimal, so that every ticket is one word. CHECK is a hash of
 * what follows it, so that a ticket that was cut off or mistyped is noticed. */
#ifndef BL_CORE_TICKET_H
#define BL_CORE_TICKET_H

#include "core/key.h"
#include "core/owner.h"

struct bl_ticket {
	struct bl_key key;
	uint64_t fence;
	uint32_t limit; /* of a shared lock; 0: none */
	uint32_t depth, lease_ms, min_hold_ms;
	char owner[BL_OWNER_MAX + 1]; /* as it stands in the row */
};

/* LIMIT: size is too small; nothing is written. */
int bl_ticket_write(const struct bl_ticket *t, char *ret, size_t size, struct bl_err *err);

/* INVALID: `text` is not a ticket. */
int bl_ticket_read(const char *text, struct bl_ticket *ret, struct bl_err *err);

#endif
