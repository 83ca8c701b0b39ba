/* The rows of lease locks: one operation, one statement, one short transaction. Each operation may
 * be repeated when its reply was lost: counts are absolute, and the fence stands in every WHERE.
 *
 * Errors of all: CONN (the statement may or may not have run), DB. */
#ifndef BL_STORE_ROW_LOCK_H
#define BL_STORE_ROW_LOCK_H

#include "core/key.h"
#include "store/session/session.h"

struct bl_row {
	bool found;
	uint64_t fence;
	uint32_t depth;
	int64_t left_us; /* of the lease; <= 0: over */
	bool took_over;  /* this hold has, from a holder that never released */
	bool shares;     /* a sharer's row: its slot is 1 or more */
	bool locked;     /* by a transaction that has fenced it, as far as that was asked */
	uint64_t bell; /* server's id of the connection that had the doorbell at acquire, 0: none */
	uint64_t bell_by; /* and of the one that has it now */
	char owner[BL_OWNER_MAX + 1];
};

#define BL_ROW_TEXT_MAX 320

/* For messages: "held by 17@4121.9f..@db-7 (fence 12, depth 1), lease ends in 18.204 s". */
void bl_row_describe(const struct bl_row *row, char *ret, size_t size);

/* Reads the columns ROW_READ (sql/phrases.h). The others, bell_by, took_over and shares, are 0. */
enum { BL_ROW_COLUMNS = 5 };
void bl_row_read(MYSQL_ROW from, struct bl_row *ret);

/* Limits left_us to 30 years: a `timeout` that was set by hand may be centuries away, more than
 * nanoseconds can count. */
int64_t bl_lock_within(int64_t left_us);

/* Reads row and doorbell, without locking anything. bell: NULL where there are no doorbells. */
int bl_lock_look(struct bl_session *s, const struct bl_key *key, const char *bell,
                 struct bl_row *ret, struct bl_err *err);

/* A member of a cluster may not have applied yet what another member has committed: it does not
 * find a row that is there. Waits until it has applied all that was committed up to now. *ret (or
 * NULL): it has, and may find more than before; false: the server is no member of a cluster, or
 * does not let this user wait. The session's text and parameters stay, to be sent once more. */
int bl_lock_catch_up(struct bl_session *s, bool *ret, struct bl_err *err);

/* As bl_lock_look(), for a row that should be there with this fence and a lease that is not over.
 * If *ret is no such row, no member of the cluster has one. */
int bl_lock_find(struct bl_session *s, const struct bl_key *key, uint64_t fence, struct bl_row *ret,
                 struct bl_err *err);

/* Asks whether the row that was just seen is locked, without waiting. */
int bl_lock_probe(struct bl_session *s, const struct bl_key *key, bool *ret_locked,
                  struct bl_err *err);

/* After a statement that waited in vain: does another session keep such statements away from the
 * whole table? OK: no. DB: yes, and bl_table_locked(err) is true; *ret_reads: it lets reads in.
 * Waits 200 ms at most. */
int bl_lock_ask_table(struct bl_session *s, bool *ret_reads, struct bl_err *err);

/* After a statement that waited in vain: *err names the table, if the whole table is locked. */
void bl_lock_name(struct bl_session *s, struct bl_err *err);

/* A hold, as the WHERE clauses name it. */
struct bl_ref {
	const struct bl_key *key;
	const char *owner;
	uint64_t fence;
	const char *bell; /* the doorbell's name, by which sleepers that wait for the row to go
	                     (bell/sleepers.h) are found and woken. NULL: nobody is */
};

/* *ret_matched false: no such row, at any member of a cluster; or (depth, renew) its lease is over.
 * lease_ms 0 leaves the lease as it is; depth never shortens it. */
int bl_lock_depth(struct bl_session *s, struct bl_ref hold, uint32_t depth, uint32_t lease_ms,
                  bool *ret_matched, struct bl_err *err);
int bl_lock_renew(struct bl_session *s, struct bl_ref hold, uint32_t lease_ms, bool *ret_matched,
                  struct bl_err *err);

/* bell: the session's doorbell, freed in the same packet after the row; NULL: none. rest_us: nobody
 * gets the lock until rest_us after the hold began; 0: no rest; BL_ROW_STAYS: the owner only waited
 * in slot 0. hold.owner NULL: any owner's row. */
int bl_lock_drop(struct bl_session *s, struct bl_ref hold, const char *bell, int64_t rest_us,
                 bool *ret_matched, struct bl_err *err);

/* The exclusive hold becomes a sharer's in `slot`, with its fence, depth and lease. bell: as of
 * bl_lock_drop(). *ret_matched false: no such row, or its lease is over. DB with BL_CLASS_NULL: the
 * slot is taken. */
int bl_lock_downgrade(struct bl_session *s, struct bl_ref hold, uint32_t slot, const char *bell,
                      bool *ret_matched, struct bl_err *err);

/* Gives the hold to new_owner, for lease_ms at least, without a doorbell. exported: only if
 * bl_lock_give() gave it to the present owner with this depth and lease, because a ticket may claim
 * others. */
int bl_lock_give(struct bl_session *s, struct bl_ref hold, const char *new_owner, uint32_t depth,
                 uint32_t lease_ms, bool exported, bool *ret_matched, struct bl_err *err);

/* Gives back the row of hold.owner in hold.key->slot, as this member of a cluster has it, unless it
 * has hold.fence. See bl_shared_sweep(). */
int bl_lock_sweep_row(struct bl_session *s, struct bl_ref hold, bool *ret_matched,
                      struct bl_err *err);

/* Any owner's: hold.owner is not compared. */
int bl_lock_break(struct bl_session *s, struct bl_ref hold, bool *ret_matched, struct bl_err *err);

#endif
