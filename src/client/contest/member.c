#include "client/contest/member.h"

#include <stdlib.h>
#include <string.h>

static int by_primary_key(const void *a, const void *b)
{
	const struct bl_key *x = &((const struct bl_member *)a)->call.key;
	const struct bl_key *y = &((const struct bl_member *)b)->call.key;
	int order = strcmp(x->id, y->id);

	return order ? order : strcmp(x->type, y->type);
}

int bl_members_sort(struct bl_member *members, size_t n)
{
	if (n > 1)
		qsort(members, n, sizeof(*members), by_primary_key);
	for (size_t i = 1; i < n; i++)
		if (bl_key_equal(&members[i].call.key, &members[i - 1].call.key))
			return bl_err_set(members->call.err, BIZLOCK_INVALID,
			                  "keys: %s/%s is there twice", members[i].call.key.type,
			                  members[i].call.key.id);
	return BIZLOCK_OK;
}
