/* A leader waits a moment for those that were in the last batch of its connection. They have their
 * answers, and most often come back at once with what they want next. The first to come would find
 * the connection idle, go alone, and keep all others waiting for a commit of its own: with 8 or 16
 * threads a third of the time. */
#ifndef BL_CLIENT_CONN_GATHER_H
#define BL_CLIENT_CONN_GATHER_H

#include "client/state.h"

/* A batch of n threads, which began then, has its answers now. */
void bl_gather_expect(struct bl_conn *conn, unsigned n, bl_time began);

/* The caller has the connection, which is open for jobs: waits until those are in its line, or
 * their time is over. */
void bl_gather(struct bizlock *b, struct bl_conn *conn);

/* A job has come to the line. */
void bl_gather_note(const struct bl_conn *conn);

#endif
