#include "base/socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct bl_socket bl_socket_of(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		return (struct bl_socket){.fd = -1};
	return (struct bl_socket){fd, st.st_ino};
}

/* Works on a duplicate of the descriptor: nobody else can close that and reuse its number. */
void bl_socket_shut(struct bl_socket socket)
{
	int copy = socket.fd < 0 ? -1 : fcntl(socket.fd, F_DUPFD_CLOEXEC, 0);
	struct stat st;

	if (copy < 0)
		return;
	if (fstat(copy, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_ino == socket.inode)
		shutdown(copy, SHUT_RDWR);
	close(copy);
}
