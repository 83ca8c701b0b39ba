/* A server that never says anything: the kernel accepts connections for it. */
#ifndef TEST_MUTE_H
#define TEST_MUTE_H

struct mute {
	int fd;
	unsigned port; /* on 127.0.0.1 */
};

struct mute mute_start(void);

/* How many connections were made to it. Ends them, so that nobody waits for them longer. */
unsigned mute_stop(struct mute *m);

#endif
