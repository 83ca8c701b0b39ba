/* bizlock.h stands alone, and its initializers compile. */
#include <bizlock.h>

bizlock_acquire_opts opts = BIZLOCK_ACQUIRE_OPTS_INIT;
bizlock_grant grant = BIZLOCK_GRANT_INIT;
bizlock_numbers numbers = BIZLOCK_NUMBERS_INIT;

#define AS_CASE(name, number, text) case BIZLOCK_##name:

int is_error(int err);

int is_error(int err)
{
	switch (err) {
		BIZLOCK_ERRORS(AS_CASE)
		return 1;
	}
	return 0;
}
