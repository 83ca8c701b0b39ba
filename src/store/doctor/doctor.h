/* Are the server, its tables and this user fit for bizlock? Each check makes one finding. */
#ifndef BL_STORE_DOCTOR_DOCTOR_H
#define BL_STORE_DOCTOR_DOCTOR_H

#include "store/session/server.h"

struct bl_finding {
	const char *name;
	enum bizlock_level level;
	struct bl_buf text, remedy; /* of printable characters; freed by bl_finding_free() */
};

struct bl_doctor {
	const struct bl_config *config;
	const struct bl_process *process; /* whose locks the doctor tries */
	struct bl_session session;
	bool reached;
	struct bl_err refused;     /* the error of connecting as a client does; OK: not refused */
	struct bl_err no_database; /* the error of selecting the database; OK: selected */
	struct bl_err blind;       /* the error of reading the next two */
	struct bl_rows *variables;
	struct bl_server server;
	bool fit; /* to try a lock: the tables are known, and a cluster can commit */
	char account[4 * 128 + 256]; /* name@host; "": it would not say */
};

/* Connects as far as that can be done: the checks tell what fails. *ret, *config and *process must
 * not move before bl_doctor_end(). */
void bl_doctor_begin(struct bl_doctor *ret, const struct bl_config *config,
                     const struct bl_process *process);
void bl_doctor_end(struct bl_doctor *d);

size_t bl_doctor_checks(void);

/* Makes the check of that number. ret->text is empty when there is nothing to look at. A check that
 * could not look makes a finding, too. CONN, with a finding that says so: no server, or the
 * connection is lost; this finding is the last one. NOMEM. */
int bl_doctor_look(struct bl_doctor *d, size_t number, struct bl_finding *ret, struct bl_err *err);

void bl_finding_free(struct bl_finding *f);

#endif
