/* What administrators do to tables that are in use. Each may stand in the way of those who take
 * locks, and cost them leases; none may let two have one lock, or take fences back. */
#ifndef CHAOS_ADMIN_H
#define CHAOS_ADMIN_H

#include "faults.h"

/* Those of faults.h from LOCK on. */
chaos_way chaos_lock_tables, chaos_block_commits, chaos_keep_old_view, chaos_back_up,
        chaos_alter_behind_tx, chaos_swap_copy, chaos_fill_server, chaos_kill_sleepers,
        chaos_change_password;

/* The option file in which clients find the password. */
void chaos_write_password(const struct chaos_site *site, const char *password);

#endif
