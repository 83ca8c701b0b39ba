/* What the contenders on MariaDB or MySQL have in common: a schema of their own. */
#ifndef BENCH_MYSQL_H
#define BENCH_MYSQL_H

#include <stdarg.h>

#include "world.h"

extern struct world bench_world;

void bench_mysql_set_up(void); /* with bizlock's tables */
void bench_mysql_tear_down(void);
long long bench_mysql_requests(void);
unsigned bench_mysql_port(void);

/* A connection to the schema; READ COMMITTED or as the server has it. */
MYSQL *bench_mysql_open(bool read_committed);

/* Sends one statement. 0, or the server's error number. */
unsigned bench_mysql_send(MYSQL *db, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
unsigned bench_mysql_vsend(MYSQL *db, const char *fmt, va_list args)
        __attribute__((format(printf, 2, 0)));

#endif
