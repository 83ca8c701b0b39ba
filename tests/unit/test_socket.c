#include <criterion/criterion.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/socket.h"

static void make_pair(int ends[2])
{
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
}

static bool has_ended(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

Test(socket, is_ended_for_both_who_use_it)
{
	int ends[2];

	make_pair(ends);
	bl_socket_shut(bl_socket_of(ends[0]));
	cr_assert(has_ended(ends[0]));
	cr_assert(has_ended(ends[1]));
}

Test(socket, is_left_alone_when_its_number_stands_for_another)
{
	int ends[2], others[2];
	struct bl_socket socket;

	make_pair(ends);
	make_pair(others);
	socket = bl_socket_of(ends[0]);
	cr_assert_eq(dup2(others[0], ends[0]), ends[0]);
	bl_socket_shut(socket);
	cr_assert_not(has_ended(others[0]));
	cr_assert_not(has_ended(others[1]));
}

Test(socket, may_be_none)
{
	struct bl_socket none = bl_socket_of(-1);

	cr_assert_eq(none.fd, -1);
	bl_socket_shut(none);
}
