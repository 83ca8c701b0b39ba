/* What bizlock_doctor() finds, for tests that compare it. */
#ifndef TEST_CR_FINDINGS_H
#define TEST_CR_FINDINGS_H

#include "cr_test.h"

struct finding {
	char name[32], text[2048], remedy[4096];
	int level;
};

struct findings {
	unsigned count;
	struct finding all[64];
};

/* The doctor is called by a client of w that is not open, and must answer `want`. */
struct findings doctor_of(const struct world *w, const char *const *options, int want);

/* The same, of a server that is about to change: there may be another answer. */
struct findings doctor_of_server(const struct world *w, const char *const *options, int want,
                                 int or_else);

/* The finding of this name. NULL: there is none. */
const struct finding *finding_of(const struct findings *f, const char *name);

/* There is a finding of this name and level, and `word` stands in its text or remedy. */
void expect_finding(const struct findings *f, const char *name, int level, const char *word);

/* Findings about settings that differ from one test server to another. */
#define SERVERS_OWN "durability packets wait_timeout transactions connections prepared_statements"

/* Runs the remedies: SQL, or a sentence that begins with SQL up to a colon. */
void heal(const struct findings *f, const char *name);

/* All findings are good, except those whose names stand in `but`, such as "clock grants". */
void expect_good(const struct findings *f, const char *but);

#endif
