/* The host of a connection: what the connection tells of it, and whether that one is of use. */
#ifndef BL_CLIENT_CONN_HOST_H
#define BL_CLIENT_CONN_HOST_H

#include "client/conn/pool.h"

/* All with the mutex held. */

/* As it is given back: its host has answered, or gave no answer in time, or said that it takes no
 * writes. */
void bl_conn_note_host(const struct bl_pool *p, const struct bl_conn *c);

/* An idle connection that is likely to be of no use costs less now than when a statement is sent.
 */
void bl_conn_leave_if_useless(const struct bl_pool *p, struct bl_conn *c);

#endif
