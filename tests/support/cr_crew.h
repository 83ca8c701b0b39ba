/* Threads of one client. Their requests line up behind an earlier one and travel in one batch. */
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
	uint32_t flags; /* of all calls but the occupant's */
	char ids[CREW][8], owners[CREW][8];
};

/* A client with one connection, or with these options. */
void crew_begin(struct crew *c, const char *combine);
void crew_begin_with(struct crew *c, const char *const *options);
void crew_begin_by(struct crew *c, struct proxy *p, const char *const *options);

/* Fails if a row or a doorbell is left. */
void crew_end(struct crew *c);

/* What all of them do next: release, or acquire. */
/* All share their keys, which have been shared before. */
void crew_shares(struct crew *c);
void crew_releases(struct crew *c, bool release);

/* crew_line_up: one request, the occupant's, has the connection and gets no answer, so the others
 * line up behind it. crew_go: the answers come. crew_all_together: both. */
void crew_line_up(struct crew *c);
void crew_go(struct crew *c);
void crew_all_together(struct crew *c);

void crew_start(struct crew *c); /* the others alone */
void crew_occupant_leaves(struct crew *c);

void crew_all_are(const struct crew *c, int rc);
void crew_release_held(struct crew *c); /* one by one */

/* Breaks the lock of thread i. bizlock_break() would end its connection as well. */
void crew_breaks(const struct crew *c, int i);

/* This number of packets was sent since `before`, beside those of the occupant: its second fence,
 * because its answer was slow, and its release. On a slow machine there may be a second fence for
 * the whole batch, too, or for each request that went alone. Where another test's client watches
 * something on this server, releases ask whether that is of theirs. */
void crew_sent(const struct crew *c, unsigned before, unsigned packets);

#endif
