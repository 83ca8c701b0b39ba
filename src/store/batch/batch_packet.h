/* The state of a batch, and the functions that its files share. */
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
	bool shared;        /* all entries are of sharers; else all are exclusive */
	size_t acquisitions, releases, inserts;
	bool at_once;  /* one packet that does all or nothing */
	bool compound; /* one compound statement of MariaDB's; see struct bl_server */
	bool single;   /* no releases, and no compound: its INSERT commits itself */

	/* OF THE PACKET THAT CHANGES THE ROWS */
	unsigned answers; /* how many it has */
	unsigned insert;  /* index of the INSERT's answer; not used for a compound, which has
	                     none */
	unsigned commit;  /* index of the answer to COMMIT, or to a single INSERT. 0 for a compound,
	                     whose first answer comes after COMMIT */
	bool looks;       /* an answer after COMMIT has rows: of sharers a look at slots 0, of a
	                     compound the fences */
	unsigned needed;  /* after this many answers the fate of all rows is known */
	unsigned answered; /* how many were read */
	uint64_t first;    /* fence of the first row inserted; 0: none was */
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
void bl_batch_second(struct batch *b); /* also sets `single` and the fields of the packet */
void bl_batch_undo(struct batch *b);
void bl_batch_read(struct batch *b);  /* all that was inserted */
void bl_batch_again(struct batch *b); /* draws new fences for acquisitions that are done, and reads
                                         them */

/* Columns from which the fences are computed, and their readers. An INSERT in a compound has no
 * answer of its own that would tell the first fence. The step is not known where the counter's
 * offset is larger than its increment: when the counter passes the offset it makes one smaller
 * step. */
#define BL_BATCH_STEP                                                                              \
	"IF(@@auto_increment_offset<=@@auto_increment_increment,@@auto_increment_increment,0)"
#define BL_BATCH_FENCES "LAST_INSERT_ID()," BL_BATCH_STEP
enum { BL_BATCH_FENCES_COLUMNS = 2 };
void bl_batch_read_step(struct batch *b, const char *field);
void bl_batch_read_fences(struct batch *b, MYSQL_ROW fields);

/* The doorbells of releases, and how many there are. */
size_t bl_batch_bells(const struct batch *b, const char *ret[BL_BATCH_MAX]);

/* What differs in a batch of sharers: batch_sharers.c. */
void bl_sharers_add_free(struct batch *b); /* a condition: no sharer would have to wait */
void bl_sharers_ask(struct batch *b);      /* the first packet */
bl_answer_fn bl_sharers_read_ask;
bool bl_sharers_make_headers(struct batch *b); /* makes slots 0 and asks again; false: none is
                                                  missing */
void bl_sharers_end(struct batch *b);          /* adds to the second packet, after COMMIT, */
void bl_sharers_read(struct batch *b, struct bl_rows *rows); /* and reads the look that it adds */
int bl_sharers_tell(struct batch *b, struct bl_err *err);
void bl_sharers_wake(struct batch *b);

#endif
