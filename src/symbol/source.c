#include "symbol/source.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "target/open.h"

static uint64_t nanoseconds(const struct timespec *t)
{
	return t->tv_sec * 1000000000ULL + t->tv_nsec;
}

struct source source_of(enum source_where where, int fd, const char *path)
{
	struct source s = { .where = where };
	struct stat st;

	if (where == SOURCE_NONE || where == SOURCE_SERVER)
		return s;
	/* A deleted file cannot be found again, nor can one whose path is too long for this struct. */
	if (fstat(fd, &st) || !st.st_nlink || strlen(path) >= sizeof(s.path)) {
		s.where = SOURCE_LOST;
		return s;
	}
	s.uid = st.st_uid;
	s.device = st.st_dev;
	s.inode = st.st_ino;
	s.size = st.st_size;
	s.modified_ns = nanoseconds(&st.st_mtim);
	s.changed_ns = nanoseconds(&st.st_ctim);
	snprintf(s.path, sizeof(s.path), "%s", path);
	return s;
}

bool source_same(const struct source *a, const struct source *b)
{
	return a->where != SOURCE_LOST && !memcmp(a, b, sizeof(*a));
}

bool source_holds(const struct source *s, pid_t pid)
{
	_cleanup_fd_ int fd = -1;
	struct source now;
	int r;

	if (s->where == SOURCE_NONE || s->where == SOURCE_SERVER)
		return true;
	if (s->where != SOURCE_HOST && (s->where != SOURCE_TARGET || !pid))
		return false;
	if (!memchr(s->path, 0, sizeof(s->path)))
		return false;
	r = s->where == SOURCE_HOST ? target_open_host(s->path, &fd, NULL) : target_open_path(pid, s->path, &fd, NULL);
	if (r < 0)
		return false;
	now = source_of(s->where, fd, s->path);
	return source_same(&now, s);
}
