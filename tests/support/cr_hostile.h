/* All that a client does, on a server with settings that may harm it. What came of it is looked at
 * from a session that began before they were made. */
#ifndef TEST_CR_HOSTILE_H
#define TEST_CR_HOSTILE_H

#include "cr_test.h"

/* A private server. The world as a user sees it to whom init_connect applies; `world` is the
 * administrator's, as it was. */
struct world hostile_begin(void);
void hostile_end(void);

/* what: is tried, for messages. interrupts: statements of the caller's own transactions, too, so
 * that there is nothing to look at. */
void hostile_works(const struct world *plain, const char *what, bool interrupts);

#endif
