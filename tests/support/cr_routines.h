/* For integration tests of the routines of sql/routines.sql. */
#ifndef TEST_CR_ROUTINES_H
#define TEST_CR_ROUTINES_H

#include "cr_test.h"
#include "routines.h"

#define LONG_MS 600000 /* a lease that outlasts every test */

/* For .init: a schema with tables and routines; and for .fini. */
void routines_begin(void);
void routines_end(void);

/* A connection of a program that knows SQL alone; closed by routines_end(). Thread-safe. */
MYSQL *caller(void);

/* The call must be refused with this SQLSTATE, and with a message that contains `word`. */
void expect_refused(MYSQL *db, const char *sqlstate, const char *word, const char *fmt, ...)
        __attribute__((format(printf, 4, 5)));

#endif
