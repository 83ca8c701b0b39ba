#include "tell.h"

#include <stdlib.h>
#include <string.h>

/* ---- any packet -------------------------------------------------------------------------- */

static void say_truth(struct told *t)
{
	tell(t, t->truth->data, t->truth->len);
}

void leave_out(struct told *t, uint64_t number)
{
	(void)t;
	(void)number;
}

void repeat(struct told *t, uint64_t times)
{
	while (times-- > 0)
		say_truth(t);
}

void cut(struct told *t, uint64_t eighths)
{
	tell(t, t->truth->data, t->truth->len * eighths / 8);
}

void cut_to(struct told *t, uint64_t bytes)
{
	tell(t, t->truth->data, t->truth->len < bytes ? t->truth->len : bytes);
}

void add_tail(struct told *t, uint64_t bytes)
{
	memset(t->truth->data + t->truth->len, 0xfb, bytes);
	t->truth->len += bytes;
	say_truth(t);
}

void fill(struct told *t, uint64_t byte)
{
	memset(t->truth->data, (int)byte, t->truth->len);
	say_truth(t);
}

void fill_rest(struct told *t, uint64_t byte)
{
	if (t->truth->len > 1)
		memset(t->truth->data + 1, (int)byte, t->truth->len - 1);
	say_truth(t);
}

void scatter(struct told *t, uint64_t bytes)
{
	while (bytes-- > 0 && t->truth->len > 0)
		t->truth->data[(size_t)rand_r(&t->seed) % t->truth->len] =
		        (unsigned char)rand_r(&t->seed);
	say_truth(t);
}

void skew_number(struct told *t, uint64_t by)
{
	t->skew = (unsigned char)by;
	say_truth(t);
}

void claim_length(struct told *t, uint64_t length)
{
	t->length = length;
	say_truth(t);
}

void flood(struct told *t, uint64_t length)
{
	t->length = length;
	t->flood = true;
	say_truth(t);
}

/* In time for each read: a packet by its bytes, or one packet after the other. */
void trickle(struct told *t, uint64_t length)
{
	t->pace = length ? 1 : t->truth->len + HEADER;
	flood(t, length);
}

/* ---- other packets ------------------------------------------------------------------------- */

void say_error(struct told *t, uint64_t native)
{
	unsigned char error[] = "\xff\0\0#HY000You have an error: %s%n\x1b[31m";

	error[1] = (unsigned char)native;
	error[2] = (unsigned char)(native >> 8);
	tell(t, error, sizeof(error) - 1);
}

void say_error_first(struct told *t, uint64_t native)
{
	say_error(t, native);
	say_truth(t);
}

void say_long_error(struct told *t, uint64_t len)
{
	unsigned char *error = malloc(len);

	memset(error, 'x', len);
	memcpy(error, "\xff\x28\x04#42000", 9);
	tell(t, error, len);
	free(error);
}

/* bytes: of an OK with nothing affected, or so much. */
void say_ok(struct told *t, uint64_t affected)
{
	unsigned char ok[] = {0, (unsigned char)affected, 7, 2, 0, 0, 0};

	tell(t, ok, sizeof(ok));
}

void say_ok_first(struct told *t, uint64_t affected)
{
	say_ok(t, affected);
	say_truth(t);
}

void say_end(struct told *t, uint64_t flags)
{
	unsigned char end[] = {0xfe, 0, 0, (unsigned char)flags, 0};

	tell(t, end, sizeof(end));
}

void say_end_first(struct told *t, uint64_t flags)
{
	say_end(t, flags);
	say_truth(t);
}

void say_file(struct told *t, uint64_t number)
{
	(void)number;
	tell(t, (const unsigned char *)"\xfb/etc/passwd", 12);
}

void say_one_byte(struct told *t, uint64_t byte)
{
	unsigned char one = (unsigned char)byte;

	tell(t, &one, 1);
}

/* ---- flags and more results ---------------------------------------------------------------- */

void set_flags(struct told *t, uint64_t flags)
{
	unsigned char *at = reply_flags(t->truth);

	if (at) {
		at[0] = (unsigned char)flags;
		at[1] = (unsigned char)(flags >> 8);
	}
	say_truth(t);
}

void add_flags(struct told *t, uint64_t flags)
{
	unsigned char *at = reply_flags(t->truth);

	if (at) {
		at[0] |= (unsigned char)flags;
		at[1] |= (unsigned char)(flags >> 8);
	}
	say_truth(t);
}

void drop_flags(struct told *t, uint64_t flags)
{
	unsigned char *at = reply_flags(t->truth);

	if (at)
		at[0] &= (unsigned char)~flags;
	say_truth(t);
}

void more_answers(struct told *t, uint64_t affected)
{
	add_flags(t, MORE_RESULTS);
	say_ok(t, affected);
}

void more_rows(struct told *t, uint64_t number)
{
	static const unsigned char column[] =
	        "\3def\0\0\0\1x\1x\x0c\x3f\0\x14\0\0\0\x08\x81\0\0\0\0";

	(void)number;
	add_flags(t, MORE_RESULTS);
	tell(t, (const unsigned char *)"\1", 1);
	tell(t, column, sizeof(column) - 1);
	say_end(t, 2);
	tell(t,
	     (const unsigned char *)"\1"
	                            "1",
	     2);
	say_end(t, 2);
}

void endless_answers(struct told *t, uint64_t affected)
{
	unsigned char ok[] = {0, (unsigned char)affected, 0, 2 | MORE_RESULTS, 0, 0, 0};

	add_flags(t, MORE_RESULTS);
	tell(t, ok, sizeof(ok));
	t->flood = true;
}

/* ---- numbers ------------------------------------------------------------------------------- */

static size_t put_number(unsigned char *at, uint64_t n)
{
	*at = 0xfe;
	for (int i = 0; i < 8; i++)
		at[1 + i] = (unsigned char)(n >> 8 * i);
	return 9;
}

static void put_ok(struct told *t, uint64_t affected, uint64_t id)
{
	unsigned char ok[32] = {0};
	size_t len = 1;

	len += put_number(ok + len, affected);
	len += put_number(ok + len, id);
	ok[len] = 2;
	tell(t, ok, len + 4);
}

void say_affected(struct told *t, uint64_t affected)
{
	put_ok(t, affected, 7);
}

void say_id(struct told *t, uint64_t id)
{
	put_ok(t, 1, id);
}

void say_id_of_two(struct told *t, uint64_t id)
{
	put_ok(t, 2, id);
}

void say_count(struct told *t, uint64_t count)
{
	unsigned char text[9];

	tell(t, text, put_number(text, count));
}

void add_to_count(struct told *t, uint64_t by)
{
	t->truth->data[0] += (unsigned char)by;
	say_truth(t);
}

void put_at(struct told *t, uint64_t number)
{
	size_t at = number >> 48, bytes = number >> 40 & 0xff;

	for (size_t i = 0; i < bytes && at + i < t->truth->len; i++)
		t->truth->data[at + i] = (unsigned char)(number >> 8 * i);
	say_truth(t);
}

/* Counted from the end of the packet, as the fixed part of a column is. */
void put_at_end(struct told *t, uint64_t number)
{
	size_t back = number >> 48, bytes = number >> 40 & 0xff;

	for (size_t i = 0; i < bytes && back <= t->truth->len; i++)
		t->truth->data[t->truth->len - back + i] = (unsigned char)(number >> 8 * i);
	say_truth(t);
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* A row of texts: each field is a length and that many bytes. */
static unsigned fields_of(const struct packet *p)
{
	unsigned n = 0;

	for (size_t at = 0; at < p->len; n++)
		at += p->data[at] < 0xfb ? 1u + p->data[at] : p->data[at] == 0xfb ? 1 : p->len;
	return n;
}

void all_null(struct told *t, uint64_t number)
{
	unsigned n = fields_of(t->truth);

	(void)number;
	memset(t->truth->data, 0xfb, n);
	tell(t, t->truth->data, n);
}

static const char *const texts[] = {"",
                                    "-1",
                                    "0",
                                    "1",
                                    "2",
                                    "18446744073709551616",
                                    "-99999999999999999999999999",
                                    "1e99",
                                    "0x10",
                                    "\xff\xfe\xfd",
                                    "%s%n",
                                    "NaN",
                                    "4611686018427387905"};

void all_fields(struct told *t, uint64_t which)
{
	unsigned n = fields_of(t->truth);
	size_t len = strlen(texts[which]), at = 0;

	for (; n > 0 && at + len + 1 < PACKET_ROOM; n--) {
		t->truth->data[at++] = (unsigned char)len;
		memcpy(t->truth->data + at, texts[which], len);
		at += len;
	}
	tell(t, t->truth->data, at);
}

void long_fields(struct told *t, uint64_t len)
{
	unsigned n = fields_of(t->truth);
	size_t at = 0;

	for (; n > 0 && at + len + 3 < PACKET_ROOM; n--) {
		t->truth->data[at++] = 0xfc;
		t->truth->data[at++] = (unsigned char)len;
		t->truth->data[at++] = (unsigned char)(len >> 8);
		memset(t->truth->data + at, '9', len);
		at += len;
	}
	tell(t, t->truth->data, at);
}

void add_field(struct told *t, uint64_t number)
{
	(void)number;
	memcpy(t->truth->data + t->truth->len,
	       "\1"
	       "1",
	       2);
	t->truth->len += 2;
	say_truth(t);
}

void null_bits(struct told *t, uint64_t bits)
{
	if (t->truth->len > 1)
		t->truth->data[1] = (unsigned char)bits;
	say_truth(t);
}
