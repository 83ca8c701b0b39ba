#define _GNU_SOURCE 1
#include "cr_numbers.h"

#include <stdio.h>
#include <string.h>

#include "cr_test.h"

#define FIELDS(X)                                                                                  \
	X(held)                                                                                    \
	X(acquired)                                                                                \
	X(taken_over)                                                                              \
	X(reentered)                                                                               \
	X(busy)                                                                                    \
	X(timed_out)                                                                               \
	X(cancelled)                                                                               \
	X(unknown)                                                                                 \
	X(released)                                                                                \
	X(lost)                                                                                    \
	X(renewals)                                                                                \
	X(renew_lag_us)                                                                            \
	X(renew_lag_max_us)                                                                        \
	X(retried_conflict)                                                                        \
	X(retried_stopped)                                                                         \
	X(retried_lost)                                                                            \
	X(reconnects)                                                                              \
	X(clock_steps)                                                                             \
	X(renew_unreached)                                                                         \
	X(renew_refused)                                                                           \
	X(renew_fenced)

bizlock_numbers numbers_of(bizlock *b)
{
	bizlock_numbers now = BIZLOCK_NUMBERS_INIT;

	expect(OK, b, bizlock_stats(b, &now));
	return now;
}

uint64_t waits_of(const bizlock_numbers *n)
{
	uint64_t sum = 0;

	for (int i = 0; i < BIZLOCK_WAIT_BUCKETS; i++)
		sum += n->waits[i];
	return sum;
}

static void tell(char text[512], const char *field, uint64_t before, uint64_t now)
{
	size_t length = strlen(text);

	if (now != before)
		snprintf(text + length, 512 - length, "%s%s%+lld", length > 0 ? " " : "", field,
		         (long long)(now - before));
}

const char *moved(bizlock *b, bizlock_numbers *before)
{
	static char text[512];
	bizlock_numbers now = numbers_of(b);

	text[0] = '\0';
#define TELL(field) tell(text, #field, before->field, now.field);
	FIELDS(TELL)
#undef TELL
	tell(text, "waits", waits_of(before), waits_of(&now));
	*before = now;
	return text;
}
