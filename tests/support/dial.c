#define _GNU_SOURCE 1
#include "dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "patience.h"

#define BACKLOG 128

static int dial_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

static int dial_tcp(const char *host, unsigned port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *to;
	char service[16];
	int fd;

	snprintf(service, sizeof(service), "%u", port ? port : 3306);
	if (getaddrinfo(host, service, &hints, &to) != 0)
		return -1;
	fd = socket(to->ai_family, to->ai_socktype | SOCK_CLOEXEC, to->ai_protocol);
	if (fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) != 0) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(to);
	return fd;
}

/* Small packets must not wait for each other. */
static int prompt(int fd)
{
	int one = 1;

	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

int dial(const struct server *at)
{
	return prompt(at->socket[0] ? dial_unix(at->socket) : dial_tcp(at->host, at->port));
}

int listen_on(const char *host, unsigned *ret_port)
{
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t size = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (inet_pton(AF_INET, host, &at.sin_addr) != 1 ||
	    bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, BACKLOG) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &size) != 0)
		die("proxy: cannot listen on %s: %s", host, strerror(errno));
	*ret_port = ntohs(at.sin_port);
	return fd;
}

int answer(int listener)
{
	return prompt(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
}
