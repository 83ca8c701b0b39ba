/* Two nodes of a Galera cluster. */
#ifndef TEST_CR_GALERA_H
#define TEST_CR_GALERA_H

#include "cr_test.h"

#define GALERA_NODES 2

extern struct own_server galera_nodes[GALERA_NODES];

/* Starts both nodes, and makes the world on the first. Skips where Galera is not installed. */
void galera_begin(void);
void galera_end(void); /* for .fini */

/* A client of that node, to be closed by the test. */
bizlock *galera_client(int node);

#endif
