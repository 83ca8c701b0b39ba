/* What the files of batches share. */
#ifndef BL_STORE_BATCH_BATCH_PACKET_H
#define BL_STORE_BATCH_BATCH_PACKET_H

#include "store/batch/batch.h"
#include "store/bell/sleepers.h"
#include "store/row/many.h"
#include "store/shared/in_way.h"
#include "store/sql/phrases.h"

struct batch {
	struct bl_session *s;
	struct bl_entry **entries; /* in the order of the primary key */
	size_t n;
	const char *suffix; /* of the owners of releases */
	bool shared;        /* of those that share locks; else of those that have them alone */
	size_t acquisitions, releases, inserts;
	bool at_once;  /* all in one packet, or nothing */
	bool compound; /* as one statement of MariaDB's; see struct bl_server */
	bool single;   /* no releases, and no compound: its INSERT commits itself */

	/* OF THE PACKET THAT CHANGES THE ROWS */
	unsigned answers; /* how many it has */
	unsigned insert;  /* index of INSERT's; not used for a compound, which has none */
	unsigned commit;  /* index of COMMIT's, or of a single INSERT's. A compound has none: 0, for
	                     its first answer comes from behind COMMIT */
	bool looks;       /* one of them has rows, from behind COMMIT: of sharers a look at slots 0,
	                     of a compound what tells the fences */
	unsigned needed;  /* how many tell all about the rows */
	unsigned answered; /* how many were read */
	uint64_t first;    /* fence of what was inserted; 0: nothing was */
	uint64_t step;     /* from one fence to the next; 0: not known */
	bool in_order;     /* all was inserted, and first and step tell the fences */
};

#define BL_BATCH_READ "biz_id, biz_type, fence, owner"
#define BL_BATCH_LOOK "biz_id, biz_type, " ROW_READ
enum { BL_BATCH_COLUMNS = 4, BL_BATCH_LOOK_COLUMNS = 2 + BL_ROW_COLUMNS };

typedef bool bl_batch_filter(const struct bl_entry *e);

bl_batch_filter bl_batch_releases, bl_batch_acquires;
bl_batch_filter bl_batch_inserts; /* an acquisition of a key that is free */
bl_batch_filter bl_batch_won;     /* an acquisition that is done */

/* All of them fill s->text. */
void bl_batch_first(struct batch *b);
void bl_batch_second(struct batch *b); /* and sets single, and what it says of the packet */
void bl_batch_undo(struct batch *b);
void bl_batch_read(struct batch *b);  /* all that was inserted */
void bl_batch_again(struct batch *b); /* new fences for what is done, which are read */

/* What tells the fences, as columns; and where these were read. An INSERT of a compound has no
 * answer that would tell the first one. A counter that passes an offset larger than the increment
 * makes one step that is smaller, so there the step is not known. */
#define BL_BATCH_STEP                                                                              \
	"IF(@@auto_increment_offset<=@@auto_increment_increment,@@auto_increment_increment,0)"
#define BL_BATCH_FENCES "LAST_INSERT_ID()," BL_BATCH_STEP
enum { BL_BATCH_FENCES_COLUMNS = 2 };
void bl_batch_read_step(struct batch *b, const char *field);
void bl_batch_read_fences(struct batch *b, MYSQL_ROW fields);

/* The doorbells of releases, and how many there are. */
size_t bl_batch_bells(const struct batch *b, const char *ret[BL_BATCH_MAX]);

/* How batches of those that share differ: batch_sharers.c. */
void bl_sharers_add_free(struct batch *b); /* a condition: nobody would have to wait */
void bl_sharers_ask(struct batch *b);      /* the first packet */
bl_answer_fn bl_sharers_read_ask;
bool bl_sharers_make_headers(struct batch *b); /* and asks again; false: none is missing */
void bl_sharers_end(struct batch *b);          /* of the second packet, behind COMMIT, */
void bl_sharers_read(struct batch *b, struct bl_rows *rows); /* and what it brings */
int bl_sharers_tell(struct batch *b, struct bl_err *err);
void bl_sharers_wake(struct batch *b);

#endif
