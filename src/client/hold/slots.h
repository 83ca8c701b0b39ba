/* The slots of sharers of locks without a limit.
 *
 * Each row needs a slot that nobody else has. A random slot would do, but a row that was deleted
 * stays in the index until the server purges it, and that waits for the oldest transaction. Behind
 * a backup of an hour a lock would have a hundred thousand such rows, and a contender that wants
 * the lock alone reads them all. A row in a slot that was used before takes the place of the
 * deleted row.
 *
 * So a client begins at a random slot, and goes on from there; but it first uses the slot that was
 * given back last. If another client has a slot, it begins anew elsewhere. */
#ifndef BL_CLIENT_HOLD_SLOTS_H
#define BL_CLIENT_HOLD_SLOTS_H

#include <stdint.h>

struct bizlock;

struct bl_slots {      /* guarded by the client's mutex */
	uint32_t next; /* the next slot that was not used yet; 0: begin anew */
	uint32_t *back;
	uint32_t count, room; /* of `back`: slots that were given back */
};

uint32_t bl_slots_take(struct bizlock *b);

/* The row in the slot was deleted, or never made: a sharer whose slot has a row is refused. Slots
 * of locks with a limit, and BL_SLOT_ANY, are ignored. */
void bl_slots_give_back(struct bizlock *b, uint32_t slot);

/* The slot that was taken last is, or may be, another client's. */
void bl_slots_avoid(struct bizlock *b);

void bl_slots_free(struct bl_slots *slots);

#endif
