#include <criterion/criterion.h>
#include <string.h>

#include "base/event.h"

#define ROUNDS 2000

Test(event, waiting_ends_at_the_deadline)
{
	struct bl_event e = {0};

	cr_expect_not(bl_event_wait(&e, bl_deadline_in_ms(1)));
}

Test(event, one_that_is_set_is_not_waited_for)
{
	struct bl_event e = {0};

	bl_event_set(&e);
	cr_expect(bl_event_wait(&e, BL_NEVER));
	cr_expect(bl_event_wait(&e, 0), "it stays set");
}

static void *set(void *event)
{
	bl_event_set(event);
	return NULL;
}

/* The memory is the waiter's as soon as it knows. */
Test(event, the_waiter_may_destroy_it_at_once, .timeout = 60)
{
	struct bl_event e;
	pthread_t t;

	for (int i = 0; i < ROUNDS; i++) {
		e = (struct bl_event){0};
		cr_assert_eq(pthread_create(&t, NULL, set, &e), 0);
		while (!bl_event_wait(&e, BL_NEVER))
			;
		memset(&e, 0xff, sizeof(e));
		pthread_join(t, NULL);
	}
}
