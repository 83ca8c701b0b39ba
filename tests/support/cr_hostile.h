/* Everything that a client does, on a server with settings that may harm it. The results are looked
 * at from a session that began before the settings were made. */
#ifndef TEST_CR_HOSTILE_H
#define TEST_CR_HOSTILE_H

#include "cr_test.h"

/* Starts a private server. Returns the world of a user to whom init_connect applies; `world` is
 * still the administrator's. */
struct world hostile_begin(void);
void hostile_end(void);

/* what: the setting that is tried, for messages. interrupts: the setting ends statements of the
 * caller's own transactions, too, so their results are not looked at. */
void hostile_works(const struct world *plain, const char *what, bool interrupts);

#endif
