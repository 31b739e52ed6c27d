#include "base/file/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void fd_close(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		close(*fd);
	*fd = -1;
	errno = saved;
}

int fd_write_all(int fd, const void *data, size_t n)
{
	const char *p = data;

	while (n) {
		ssize_t w = write(fd, p, n);

		if (w < 0 && errno == EINTR)
			continue;
		if (w < 0)
			return -errno;
		p += w;
		n -= w;
	}
	return 0;
}

ssize_t fd_read_all(int fd, void *data, size_t n)
{
	char *p = data;
	size_t got = 0;

	while (got < n) {
		ssize_t r = read(fd, p + got, n - got);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		if (!r)
			break;
		got += r;
	}
	return got;
}

int fd_read_file(int fd, size_t limit, char **ret, size_t *ret_n)
{
	size_t n = 0, capacity = 0;
	char *data = NULL;

	for (;;) {
		ssize_t r;

		if (n + 1 >= capacity) {
			capacity = capacity ? capacity * 2 : 4096;
			data = mem_resize(data, capacity, 1);
		}
		r = fd_read_all(fd, data + n, capacity - n - 1);
		if (r < 0) {
			free(data);
			return r;
		}
		n += r;
		if (n > limit) {
			free(data);
			return -EFBIG;
		}
		if (!r)
			break;
	}
	data[n] = 0;
	*ret = data;
	if (ret_n)
		*ret_n = n;
	return 0;
}

int fd_read_path(const char *path, size_t limit, char **ret, size_t *ret_n)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	return fd_read_file(fd, limit, ret, ret_n);
}

enum { FD_MAX = 8 };

int fd_send(int sock, const void *data, size_t n, const int *fds, size_t fd_count)
{
	union {
		char space[CMSG_SPACE(FD_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = (void *)data, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t sent;

	if (fd_count > FD_MAX)
		return -EINVAL;
	if (fd_count) {
		struct cmsghdr *c;

		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(c), fds, fd_count * sizeof(int));
	}
	do
		sent = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	if (sent < 0)
		return -errno;
	return (size_t)sent == n ? 0 : -EMSGSIZE;
}

ssize_t fd_recv(int sock, void *data, size_t n, int *fds, size_t *fd_count)
{
	union {
		char space[CMSG_SPACE(FD_MAX * sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	struct iovec iov = { .iov_base = data, .iov_len = n };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.space,
			      .msg_controllen = sizeof(control.space) };
	size_t want = fd_count ? *fd_count : 0, got = 0;
	ssize_t r;

	do
		r = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (fd_count)
		*fd_count = 0;
	if (r < 0)
		return -errno;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (got < want)
				fds[got++] = fd;
			else
				close(fd);
		}
	}
	if (fd_count)
		*fd_count = got;
	return r;
}

int fd_make_dirs(const char *path, mode_t mode)
{
	_cleanup_free_ char *copy = mem_strdup(path);

	for (char *p = copy + 1; (p = strchr(p, '/')); p++) {
		*p = 0;
		if (mkdir(copy, mode) && errno != EEXIST)
			return -errno;
		*p = '/';
	}
	return 0;
}
