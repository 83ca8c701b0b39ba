/* What is printed of a history and of the verdict on it. */
#ifndef CHAOS_REPORT_H
#define CHAOS_REPORT_H

#include "check.h"
#include "clients.h"

/* One fault: how long it took until the next grant of any key, and until one of each key. */
void chaos_report_fault(const struct chaos_history *h, const struct chaos_fault *fault,
                        int64_t since_us);

/* Grants, outcomes, and for each kind of fault the times until the next grants. */
void chaos_report(const struct chaos_history *h);

/* What violates the rules, and what callers were told. True: nothing does. */
bool chaos_report_verdict(const struct chaos_verdict *v, const struct chaos_history *h,
                          const struct chaos_clients *c, int64_t since_us);

#endif
