/* The numbers in Prometheus' text exposition format, version 0.0.4. */
#ifndef BL_CORE_PROMETHEUS_H
#define BL_CORE_PROMETHEUS_H

#include "base/buf.h"
#include "bizlock.h"

void bl_prometheus_write(const bizlock_numbers *numbers, struct bl_buf *ret);

#endif
