/* Lets Criterion run under ThreadSanitizer, which leaves a program only a few ranges of addresses.
 * Criterion maps its arena at an address that it draws with rand_r(), nearly always outside these
 * ranges. This rand_r() replaces libc's, and leads to the range below the one where programs are
 * loaded: BoxFort computes 0x2000_0000_0000 + r * 2^24. */
#include <stdlib.h>

#if defined(__x86_64__)
#define FIRST 0x350000u /* 0x5500_0000_0000 */
#define COUNT 0x5000u

int rand_r(unsigned *seed);

int rand_r(unsigned *seed)
{
	*seed = *seed * 1103515245u + 12345u;
	return (int)(FIRST + (*seed >> 8) % COUNT);
}
#endif
