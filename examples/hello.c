/* The smallest complete program: take a lock, work, give it back.
 *
 * Where the server is comes from the environment (BIZLOCK_HOST, BIZLOCK_SOCKET,
 * BIZLOCK_USER, BIZLOCK_PASSWORD, BIZLOCK_DATABASE) and from the usual option
 * files. It uses the public header alone. */
#include <bizlock.h>
#include <inttypes.h>
#include <stdio.h>

int main(void)
{
	bizlock_key key = {"order", "4711"};
	bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
	bizlock_grant grant = BIZLOCK_GRANT_INIT;
	bizlock *lock = NULL;
	int rc = bizlock_new(&lock);

	opts.wait_ms = 5000;
	opts.note = "hello";
	if (rc == BIZLOCK_OK)
		rc = bizlock_set(lock, "lease_ms", "10000");
	if (rc == BIZLOCK_OK)
		rc = bizlock_open(lock);
	if (rc == BIZLOCK_OK)
		rc = bizlock_acquire(lock, key, &opts, &grant);
	if (rc == BIZLOCK_OK) {
		printf("order 4711 is ours for %" PRId64 " ms, fence %" PRIu64 "\n",
		       bizlock_left_ms(lock, key, NULL), grant.fence);
		rc = bizlock_release(lock, key, NULL, NULL);
	}
	if (rc != BIZLOCK_OK)
		fprintf(stderr, "%s: %s\n", bizlock_err_name(rc), bizlock_errmsg(lock));
	bizlock_close(lock);
	return rc != BIZLOCK_OK;
}
