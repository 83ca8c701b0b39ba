/* Prepared statements where none can be had (max_prepared_stmt_count), or where their rows are not
 * to be trusted (BL_ROWS_ARE_CHECKED): the same texts with
 * literals in them, and the same answers. */
#ifndef BL_STORE_STMT_TEXT_H
#define BL_STORE_STMT_TEXT_H

#include "store/session.h"

/* As bl_session_exec() and bl_session_select(). */
int bl_text_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret, struct bl_err *err);
int bl_text_select(struct bl_session *s, enum bl_stmt stmt, MYSQL_BIND *binds, unsigned columns,
                   int (*fn)(void *arg), void *arg, struct bl_err *err);

#endif
