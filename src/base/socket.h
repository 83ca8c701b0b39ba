/* A reference to a socket that another thread owns. When the owner has closed the socket, its
 * number may stand for another file: so the inode is kept, too. */
#ifndef BL_BASE_SOCKET_H
#define BL_BASE_SOCKET_H

#include <sys/types.h>

struct bl_socket {
	int fd; /* -1: none */
	ino_t inode;
};

struct bl_socket bl_socket_of(int fd); /* -1: none */

/* Shuts the socket down, if its number still stands for the same socket: readers get the end of the
 * stream. Takes a reference to none. */
void bl_socket_shut(struct bl_socket socket);

#endif
