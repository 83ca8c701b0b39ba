/* A socket as a thread knows it that does not own it. Its number may stand for another file by now,
 * when its owner has closed it. */
#ifndef BL_BASE_SOCKET_H
#define BL_BASE_SOCKET_H

#include <sys/types.h>

struct bl_socket {
	int fd; /* -1: none */
	ino_t inode;
};

struct bl_socket bl_socket_of(int fd); /* -1: none */

/* Ends what the socket leads to, if it is still the same: whoever reads from it finds the end.
 * Takes none. */
void bl_socket_shut(struct bl_socket socket);

#endif
