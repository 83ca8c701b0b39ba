#define _GNU_SOURCE 1
#include <stdio.h>

#include "crowd.h"
#include "patience.h"
#include "store/bell/bell.h"

const char *crowd_key(char ret[16], unsigned key)
{
	snprintf(ret, 16, "key-%u", key);
	return ret;
}

static bool bell_is_free(const struct world *w, const char *id)
{
	char bell[BL_BELL_MAX + 1];
	struct bl_key key;
	struct bl_err err;

	if (bl_key_make(&key, KEY(id), &err) != BIZLOCK_OK)
		die("no key: %s", id);
	bl_bell_name(bell, bl_bell_seed(w->schema, ""), &key);
	return db_number(w->admin, "SELECT IS_FREE_LOCK('%s')", bell) == 1;
}

static bool leaves_nothing(bizlock *b, const struct world *w, const char *id, int64_t ms)
{
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	int64_t end;
	int rc;

	opts.wait_ms = ms;
	rc = bizlock_acquire(b, KEY(id), &opts, NULL);
	if (rc == BIZLOCK_OK && bell_is_free(w, id))
		die("%s: held, and its doorbell is free: is the name right?", id);
	if (rc == BIZLOCK_OK)
		rc = bizlock_release(b, KEY(id), NULL, NULL);
	if (rc != BIZLOCK_OK) {
		fprintf(stderr, "a newcomer cannot have %s: %s\n", id, bizlock_errmsg(b));
		return false;
	}
	for (end = now_ms() + ms; row_of(w, KEY(id)).there || !bell_is_free(w, id);)
		if (!pause_before(end)) {
			fprintf(stderr, "%s: row or doorbell is still there\n", id);
			return false;
		}
	return true;
}

bool crowd_leaves_nothing(const struct crowd_plan *plan, const struct world *w, int64_t ms)
{
	bizlock *b = client_open(w, NULL);
	bool good = true;
	char id[16];

	for (unsigned i = 0; i < plan->keys + plan->processes; i++)
		good = leaves_nothing(b, w, crowd_key(id, i), ms) && good;
	bizlock_close(b);
	return good;
}
