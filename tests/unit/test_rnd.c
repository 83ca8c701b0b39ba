#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "base/rnd.h"

/* From the authors' reference code. */
Test(rnd, is_splitmix64)
{
	static const struct {
		uint64_t seed, values[4];
	} rows[] = {
	        {0,
	         {0xe220a8397b1dcdafu, 0x6e789e6aa1b965f4u, 0x06c45d188009454fu,
	          0xf88bb8a8724c81ecu}},
	        {1234567,
	         {6457827717110365317u, 3203168211198807973u, 9817491932198370423u,
	          4593380528125082431u}},
	};

	for (size_t i = 0; i < 2; i++) {
		uint64_t state = rows[i].seed;

		for (size_t j = 0; j < 4; j++)
			cr_expect_eq(bl_rnd_next(&state), rows[i].values[j], "seed %llu, value %zu",
			             (unsigned long long)rows[i].seed, j);
	}
}

/* Chance of a false alarm: 2^-128. */
Test(rnd, random_bytes_differ)
{
	unsigned char a[16], b[16];

	cr_assert(bl_random_bytes(a, sizeof(a)));
	cr_assert(bl_random_bytes(b, sizeof(b)));
	cr_expect_neq(memcmp(a, b, sizeof(a)), 0);
}

static void do_nothing(int signal)
{
	(void)signal;
}

static void alarm_every_us(int us)
{
	struct itimerval timer = {{0, us}, {0, us}};

	signal(SIGALRM, do_nothing);
	cr_assert_eq(setitimer(ITIMER_REAL, &timer, NULL), 0);
}

/* Each 16 bytes all zero: 2^-128. Signals make the kernel give less than asked for. */
Test(rnd, random_bytes_fill_all_and_no_more)
{
	enum { MANY = 4 << 20 };
	static unsigned char many[MANY + 16];
	static const unsigned char zero[16];

	alarm_every_us(500);
	cr_assert(bl_random_bytes(many, MANY));
	alarm_every_us(0);
	for (size_t i = 0; i < MANY; i += 16)
		cr_assert_neq(memcmp(many + i, zero, 16), 0, "at %zu", i);
	cr_expect_eq(memcmp(many + MANY, zero, 16), 0);
	cr_expect(bl_random_bytes(many + MANY, 0));
	cr_expect_eq(many[MANY], 0);
}
