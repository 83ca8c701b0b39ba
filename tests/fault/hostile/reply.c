/* What the packets of the server's replies are, in the protocol of MySQL and MariaDB. */
#include <string.h>

#include "hostile.h"

enum { PREPARE = 0x16, EXECUTE = 0x17, LONG_DATA = 0x18, CLOSE = 0x19, QUIT = 1 };
enum { IS_OK = 0x00, IS_END = 0xfe, IS_ERROR = 0xff };
enum { END_MAX = 9, END_MAX_LONG = 0xffffff }; /* longer packets with this head are rows */

#define CLIENT_DEPRECATE_END (1u << 24)

const char *const kind_names[KINDS] = {"greeting", "login",      "ok",      "error",
                                       "prepared", "count",      "column",  "columns-end",
                                       "row",      "binary-row", "rows-end"};

static unsigned number(const unsigned char *at, unsigned bytes)
{
	unsigned n = 0;

	while (bytes-- > 0)
		n = n << 8 | at[bytes];
	return n;
}

void reply_asked(struct reply *r, unsigned char seq, const unsigned char *data, size_t len)
{
	if (r->state == IN_LOGIN && seq == 1 && len >= 4)
		r->short_ends = number(data, 4) & CLIENT_DEPRECATE_END;
	if (seq != 0 || len == 0 || data[0] == QUIT || data[0] == CLOSE || data[0] == LONG_DATA)
		return;
	r->commands[r->asked++ % COMMANDS_MAX] = data[0];
}

static unsigned char command(const struct reply *r)
{
	return r->commands[r->answered % COMMANDS_MAX];
}

bool reply_prepares(const struct reply *r)
{
	return r->state >= FIRST && r->asked != r->answered && command(r) == PREPARE;
}

static size_t number_size(const unsigned char *at)
{
	return *at < 0xfb ? 1 : *at == 0xfc ? 3 : *at == 0xfd ? 4 : *at == 0xfe ? 9 : 1;
}

unsigned char *reply_flags(const struct packet *p)
{
	size_t at = 1;

	if (p->kind == COLUMNS_END || (p->kind == ROWS_END && p->len == 5))
		return p->len >= 5 ? p->data + 3 : NULL;
	if (p->kind != OK && p->kind != ROWS_END)
		return NULL;
	for (int i = 0; i < 2 && at < p->len; i++)
		at += number_size(p->data + at);
	return at + 2 <= p->len ? p->data + at : NULL;
}

static enum kind end_answer(struct reply *r, struct packet *p, enum kind kind)
{
	const unsigned char *flags;

	p->kind = kind;
	flags = reply_flags(p);
	r->state = FIRST;
	if (!flags || !(*flags & MORE_RESULTS))
		r->answered++;
	return kind;
}

static enum kind next_login(struct reply *r, struct packet *p)
{
	if (r->state == BEFORE_LOGIN) {
		r->state = IN_LOGIN;
		return p->data[0] == IS_ERROR ? ERROR : GREETING;
	}
	if (p->data[0] == IS_OK)
		r->state = FIRST;
	return p->data[0] == IS_OK ? OK : p->data[0] == IS_ERROR ? ERROR : LOGIN;
}

static void begin_columns(struct reply *r, unsigned columns)
{
	r->columns = columns;
	r->state = COLUMNS;
}

static enum kind next_prepared(struct reply *r, const struct packet *p)
{
	unsigned columns = number(p->data + 5, 2), parameters = number(p->data + 7, 2);

	r->columns_later = columns;
	if (parameters > 0) {
		begin_columns(r, parameters);
		r->state = PARAMETERS;
	} else if (columns > 0) {
		begin_columns(r, columns);
	} else {
		r->answered++;
	}
	return PREPARED;
}

static enum kind next_first(struct reply *r, struct packet *p)
{
	if (p->data[0] == IS_ERROR)
		return end_answer(r, p, ERROR);
	if (p->data[0] == IS_OK && command(r) == PREPARE && p->len >= 9)
		return next_prepared(r, p);
	if (p->data[0] == IS_OK || p->data[0] == IS_END)
		return end_answer(r, p, OK);
	begin_columns(r, p->data[0]);
	return COUNT;
}

/* The columns, or parameters, are through, and so is their end if they have one. */
static void after_columns(struct reply *r)
{
	if (r->state == PARAMETERS && r->columns_later > 0) {
		begin_columns(r, r->columns_later);
	} else if (command(r) == PREPARE) {
		r->state = FIRST;
		r->answered++;
	} else {
		r->state = ROWS;
	}
}

static enum kind next_column(struct reply *r)
{
	if (r->columns == 0) {
		after_columns(r);
		return COLUMNS_END;
	}
	if (--r->columns == 0 && r->short_ends)
		after_columns(r);
	return COLUMN;
}

static enum kind next_row(struct reply *r, struct packet *p)
{
	size_t end_max = r->short_ends ? END_MAX_LONG : END_MAX;

	if (p->data[0] == IS_ERROR)
		return end_answer(r, p, ERROR);
	if (p->data[0] == IS_END && p->len < end_max)
		return end_answer(r, p, ROWS_END);
	return command(r) == EXECUTE ? BINARY_ROW : ROW;
}

void reply_next(struct reply *r, struct packet *p)
{
	switch (r->state) {
	case BEFORE_LOGIN:
	case IN_LOGIN:
		p->kind = next_login(r, p);
		break;
	case FIRST:
		p->kind = next_first(r, p);
		break;
	case PARAMETERS:
	case COLUMNS:
		p->kind = next_column(r);
		break;
	case ROWS:
		p->kind = next_row(r, p);
		break;
	}
}
