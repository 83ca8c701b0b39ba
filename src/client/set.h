/* Several keys at once. */
#ifndef BL_CLIENT_SET_H
#define BL_CLIENT_SET_H

#include "client/client.h"
#include "store/set.h"

struct bl_member {
	struct bl_call call;
	size_t place; /* in the caller's array */

	/* The set's own. */
	struct bl_hold *hold;
	bool is_new, deeper;
	bool took_over;
	int rc;
};

/* members: call and place are set, the rest is zero; put in the order of the primary
 * key. ret: in the caller's order, or NULL. INVALID: a key that is there twice; all
 * that bl_client_acquire() answers. */
int bl_client_acquire_all(struct bl_member *members, size_t n, const struct bl_request *request,
                          bizlock_grant *ret);

/* In the order of the primary key: in which everybody works on several. INVALID: a key that
 * is there twice, which would wait for itself. */
int bl_members_sort(struct bl_member *members, size_t n);

/* One level of each, whatever comes of the others. ret_first: the first error, or OK.
 * INVALID: a key that is there twice; then nothing is given back. */
void bl_client_release_all(struct bl_member *members, size_t n, struct bl_err *ret_first);

#endif
