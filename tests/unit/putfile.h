/*
 * putfile.h - files for tests.
 */
#pragma once

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/mem.h"

/* mode: whatever the umask says. */
static inline void put_bytes(const char *path, const void *data, size_t n, mode_t mode)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

/* name may have folders, which are made. */
static inline void put(const char *below, const char *name, const char *text)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", below, name);

	assert_int_equal(fd_make_dirs(path, 0755), 0);
	put_bytes(path, text, strlen(text), 0644);
}
