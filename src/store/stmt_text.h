/* Statements as text: the same with literals in them, and the same answers. What gives no rows is
 * sent so where nothing can be prepared (max_prepared_stmt_count). What gives rows always is:
 * neither connector compares the lengths in a prepared statement's row with its packet, and both
 * would read behind the end of memory. In rows of texts they do. */
#ifndef BL_STORE_STMT_TEXT_H
#define BL_STORE_STMT_TEXT_H

#include "store/session.h"

/* As bl_session_exec(). */
int bl_text_exec(struct bl_session *s, enum bl_stmt stmt, struct bl_done *ret, struct bl_err *err);

#endif
