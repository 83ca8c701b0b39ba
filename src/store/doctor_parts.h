/* What the doctor's checks use: the server's variables, queries, findings. */
#ifndef BL_STORE_DOCTOR_PARTS_H
#define BL_STORE_DOCTOR_PARTS_H

#include "store/doctor.h"

/* Raises the level, and begins one more remedy. */
void bl_worse(struct bl_finding *f, enum bizlock_level level);

/* The same with the remedy. */
void bl_advise(struct bl_finding *f, enum bizlock_level level, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Of the session, and so of the server where only that has one. "": not known here. */
const char *bl_variable(const struct bl_doctor *d, const char *name);
long long bl_variable_number(const struct bl_doctor *d, const char *name); /* 0: not known */
bool bl_variable_on(const struct bl_doctor *d, const char *name);

int bl_doctor_query(struct bl_doctor *d, unsigned columns, struct bl_rows **ret, struct bl_err *err,
                    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

#endif
