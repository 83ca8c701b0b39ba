/* The doctor's checks. Each adds its finding to f->text; a flaw, by bl_advise(). An error: the
 * check could not look. */
#ifndef BL_STORE_DOCTOR_DOCTOR_CHECKS_H
#define BL_STORE_DOCTOR_DOCTOR_CHECKS_H

#include "store/doctor/doctor.h"

typedef int bl_check(struct bl_doctor *d, struct bl_finding *f, struct bl_err *err);

/* doctor_server.c */
bl_check bl_check_connection, bl_check_database, bl_check_server, bl_check_sql_mode,
        bl_check_isolation, bl_check_transactions, bl_check_inherited, bl_check_binlog_format,
        bl_check_read_only;

/* doctor_additions.c */
bl_check bl_check_additions, bl_check_filters;

/* doctor_cluster.c */
bl_check bl_check_galera, bl_check_group;

/* doctor_limits.c */
bl_check bl_check_connections, bl_check_statements, bl_check_wait_timeout, bl_check_packets,
        bl_check_durability, bl_check_clock, bl_check_threads, bl_check_quotas;

/* doctor_lock.c */
bl_check bl_check_lock;

/* doctor_tables.c */
bl_check bl_check_tables, bl_check_engine, bl_check_primary_key, bl_check_collation,
        bl_check_auto_increment, bl_check_shared_limits, bl_check_routines;

/* doctor_tries.c */
bl_check bl_check_grants, bl_check_doorbell, bl_check_watching, bl_check_proxy;

/* ---- what they use ------------------------------------------------------------------------- */

/* Raises the level, and begins one more remedy. */
void bl_worse(struct bl_finding *f, enum bizlock_level level);

/* The same with the remedy. */
void bl_advise(struct bl_finding *f, enum bizlock_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* The session's value, or the server's where only the server has one. "": not known here. */
const char *bl_variable(const struct bl_doctor *d, const char *name);
long long bl_variable_number(const struct bl_doctor *d, const char *name); /* 0: not known */
bool bl_variable_on(const struct bl_doctor *d, const char *name);

int bl_doctor_query(struct bl_doctor *d, unsigned columns, struct bl_rows **ret, struct bl_err *err,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
