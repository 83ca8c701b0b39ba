/* Threads of one client, whose requests line up behind another one and travel together. */
#ifndef TEST_CR_CREW_H
#define TEST_CR_CREW_H

#include "cr_keyset.h"
#include "cr_test.h"

#define CREW 8 /* enough for a batch */
#define CREW_WAIT_MS 15000

struct crew {
	struct proxy *proxy; /* between the client and the server */
	bizlock *b, *stranger;
	struct call occupant, calls[CREW];
	const char *wants[CREW]; /* mostly ids[i] */
	bool release[CREW];
	int64_t wait_ms;
	char ids[CREW][8], owners[CREW][8];
};

/* A client with one connection; or with such options as these. */
void crew_begin(struct crew *c, const char *combine);
void crew_begin_with(struct crew *c, const char *const *options);

/* Nothing is left: no row, and no doorbell. */
void crew_end(struct crew *c);

/* What all of them do the next time. */
void crew_releases(struct crew *c, bool release);

/* One request has the connection, and its answer does not come: the others line up. And
 * the answers come; or both. */
void crew_line_up(struct crew *c);
void crew_go(struct crew *c);
void crew_all_together(struct crew *c);

void crew_start(struct crew *c); /* the others alone */
void crew_occupant_leaves(struct crew *c);

void crew_all_are(const struct crew *c, int rc);
void crew_release_held(struct crew *c); /* one by one */

/* That one's lock. bizlock_break() would end its connection as well. */
void crew_breaks(const struct crew *c, int i);

/* So many packets since then; and of the occupant its second fence, for the answer was slow,
 * and its release. On a slow machine, a second fence for all of a batch as well, or for some
 * of those who went alone. */
void crew_sent(const struct crew *c, unsigned before, unsigned packets);

#endif
