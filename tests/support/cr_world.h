/* The world of an integration test: the part of cr_test.h that tests in C++ use, too. */
#ifndef TEST_CR_WORLD_H
#define TEST_CR_WORLD_H

#include "world.h"

/* The test's schema, from init to fini. */
extern struct world world;

/* For .init: a schema with tables, or without. For .fini: away with it. */
void world_begin(void);
void world_begin_empty(void);
void world_end(void);

#endif
