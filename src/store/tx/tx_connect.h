/* Connects a handle of the program's to the server that has the locks. */
#ifndef BL_STORE_TX_TX_CONNECT_H
#define BL_STORE_TX_TX_CONNECT_H

#include "store/hosts/failover.h"

/* mysql: from mysql_init(), and not connected since. It gets the options by which f connects, but
 * none of the settings that sessions of bizlock's own have. After an error it leads nowhere.
 * INVALID, MISUSE, CONN, NOMEM; DB if the server refuses to say which server it is. */
int bl_tx_connect(struct bl_failover *f, MYSQL *mysql, struct bl_err *err);

#endif
