/* Waiting in tests: for a condition, with a deadline; never just for a while. */
#ifndef TEST_PATIENCE_H
#define TEST_PATIENCE_H

#include <stdbool.h>
#include <stdint.h>

/* How long a test waits for something that is sure to come. It is long because machines that run
 * tests are shared, and because only a test that fails waits to the end. */
#define PATIENCE_MS 60000

/* On the monotonic clock. */
int64_t now_ms(void);

/* Pauses for a moment. Returns false, and does not pause, once `end` (of now_ms()) has passed. */
bool pause_before(int64_t end);

void pause_ms(unsigned ms);

/* For a failure that no test is about: says why on stderr and aborts the process. */
void die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* A statement: waits until cond holds, or dies. */
#define eventually(cond)                                                                           \
	for (int64_t end_ = now_ms() + PATIENCE_MS; !(cond);)                                      \
		if (!pause_before(end_))                                                           \
	die("%s:%d: never happened: %s", __FILE__, __LINE__, #cond)

/* A statement: dies if cond stops being true within ms. For events that must not happen. A time
 * that is too short makes the test weaker, never wrong. */
#define steadily(cond, ms)                                                                         \
	for (int64_t end_ = now_ms() + (ms); pause_before(end_);)                                  \
		if (!(cond))                                                                       \
	die("%s:%d: does not hold any more: %s", __FILE__, __LINE__, #cond)

#endif
