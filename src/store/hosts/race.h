/* Connecting to several hosts side by side. */
#ifndef BL_STORE_HOSTS_RACE_H
#define BL_STORE_HOSTS_RACE_H

#include "store/hosts/failover.h"

/* Connects to the first host that is of use. The mutex is free. As bl_failover_connect(). */
int bl_race(struct bl_failover *f, bl_time until, struct bl_session *ret, struct bl_err *err);

#endif
