/*
 * fd.h - file descriptors: closing, whole reads and writes, passing them on.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "base/mem.h"

void fd_close(int *fd); /* closes *fd if >= 0 and sets it to -1; keeps errno */
#define _cleanup_fd_ _cleanup_(fd_close)

int fd_write_all(int fd, const void *data, size_t n);  /* 0 or -errno */
ssize_t fd_read_all(int fd, void *data, size_t n);     /* bytes until EOF or n, or -errno */
/* A whole file as a NUL-terminated string, at most limit bytes (-EFBIG beyond). Caller frees *ret. */
int fd_read_file(int fd, size_t limit, char **ret, size_t *ret_n);
int fd_read_path(const char *path, size_t limit, char **ret, size_t *ret_n);

/* Sends a message of n bytes with up to 8 descriptors, over an AF_UNIX SOCK_SEQPACKET or STREAM socket. */
int fd_send(int sock, const void *data, size_t n, const int *fds, size_t fd_count);
/* Received descriptors are CLOEXEC; *fd_count is in/out. Bytes read, 0 at EOF, or -errno. */
ssize_t fd_recv(int sock, void *data, size_t n, int *fds, size_t *fd_count);

int fd_make_dirs(const char *path, mode_t mode); /* mkdir -p of path's folders (not of its last part) */
