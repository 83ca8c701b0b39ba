/* What has to work through a proxy as it does without. */
#ifndef TEST_CR_BEHIND_H
#define TEST_CR_BEHIND_H

#include "cr_between.h"

void locks_work_behind(const struct between *x);
void a_waiter_is_woken_behind(const struct between *x);
void batches_work_behind(const struct between *x);
void commits_are_fenced_behind(const struct between *x);

/* A client with one connection loses it while its request to acquire is still on the way, and gets
 * the lock nevertheless; the request must not arrive. It loses the next connection `again` packets
 * later, too. 0: it does not. */
void take_comes_late(const struct server *at, unsigned again);

/* A request is on its way for so long that its connection counts as lost. It must not arrive. */
void late_requests_are_ended_behind(const struct between *x);

#endif
