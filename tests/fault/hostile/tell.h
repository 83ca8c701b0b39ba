/* How a lie is told: what stands in the place of one packet. */
#ifndef TEST_TELL_H
#define TEST_TELL_H

#include "hostile.h"

/* number: the place in the packet, and what is to stand there from there on. */
#define AT(place, bytes, what) ((uint64_t)(place) << 48 | (uint64_t)(bytes) << 40 | (what))

void leave_out(struct told *t, uint64_t number);
void repeat(struct told *t, uint64_t times);
void cut(struct told *t, uint64_t eighths);
void cut_to(struct told *t, uint64_t bytes);
void add_tail(struct told *t, uint64_t bytes);
void fill(struct told *t, uint64_t byte);
void fill_rest(struct told *t, uint64_t byte);
void scatter(struct told *t, uint64_t bytes);
void skew_number(struct told *t, uint64_t by);
void claim_length(struct told *t, uint64_t length);
void flood(struct told *t, uint64_t length);
void trickle(struct told *t, uint64_t length);
void say_error(struct told *t, uint64_t native);
void say_error_first(struct told *t, uint64_t native);
void say_long_error(struct told *t, uint64_t len);
void say_ok(struct told *t, uint64_t affected);
void say_ok_first(struct told *t, uint64_t affected);
void say_end(struct told *t, uint64_t flags);
void say_end_first(struct told *t, uint64_t flags);
void say_file(struct told *t, uint64_t number);
void say_one_byte(struct told *t, uint64_t byte);
void set_flags(struct told *t, uint64_t flags);
void add_flags(struct told *t, uint64_t flags);
void drop_flags(struct told *t, uint64_t flags);
void more_answers(struct told *t, uint64_t affected);
void more_rows(struct told *t, uint64_t number);
void endless_answers(struct told *t, uint64_t affected);
void say_affected(struct told *t, uint64_t affected);
void say_id(struct told *t, uint64_t id);
void say_id_of_two(struct told *t, uint64_t id);
void say_count(struct told *t, uint64_t count);
void add_to_count(struct told *t, uint64_t by);
void put_at(struct told *t, uint64_t number);
void put_at_end(struct told *t, uint64_t number);
void all_null(struct told *t, uint64_t number);
void all_fields(struct told *t, uint64_t which);
void long_fields(struct told *t, uint64_t len);
void add_field(struct told *t, uint64_t number);
void null_bits(struct told *t, uint64_t bits);

#endif
