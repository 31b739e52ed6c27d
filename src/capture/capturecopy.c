#include "capture/capturecopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "capture/capturefile.h"

/* A recorder restarts its log every few seconds at most: a second try is nearly always enough. */
#define COPY_TRIES 5
/* SQLite leaves one page out, at 1 GB; no more. A file of nothing but holes is there to waste our time. */
#define MOST_HOLES 1000
/* Where no folder can take files without a name, copies are in memory. */
#define MOST_MEMORY (1 << 30)

/* From *at on: the next stretch of data, false at the end of the file. Where holes are not known, all is data. */
static int next_data(int fd, off_t size, off_t *at, off_t *ret_end)
{
	off_t start = lseek(fd, *at, SEEK_DATA), end;

	if (*at >= size || (start < 0 && errno == ENXIO))
		return 0;
	if (start < 0 && errno != EINVAL && errno != EOPNOTSUPP)
		return -errno;
	end = start < 0 ? size : lseek(fd, start, SEEK_HOLE);
	*at = start < 0 ? *at : start;
	*ret_end = end < 0 || end > size ? size : end;
	return *ret_end > *at;
}

static int measure(int fd, uint64_t *bytes)
{
	off_t at = 0, end = 0;
	struct stat st;
	int holes = 0, r;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) < 0)
		return -errno;
	while ((r = next_data(fd, st.st_size, &at, &end)) > 0) {
		*bytes += end - at;
		at = end;
		if (++holes > MOST_HOLES)
			return -EFBIG;
	}
	return r;
}

static int copy_range(int from, int to, off_t at, off_t end)
{
	_cleanup_free_ char *block = mem_alloc(1 << 16);

	while (at < end) {
		ssize_t n = pread(from, block, MIN(end - at, (off_t)1 << 16), at), done = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n ? -errno : 0; /* the file became shorter: the log was restarted */
		while (done < n) {
			ssize_t put = pwrite(to, block + done, n - done, at + done);

			if (put < 0 && errno != EINTR)
				return -errno;
			done += put > 0 ? put : 0;
		}
		at += n;
	}
	return 0;
}

static int copy_file(int from, int to)
{
	off_t at = 0, end = 0;
	struct stat st;
	int r;

	if (fstat(from, &st) < 0 || ftruncate(to, 0) < 0 || ftruncate(to, st.st_size) < 0)
		return -errno;
	while ((r = next_data(from, st.st_size, &at, &end)) > 0) {
		r = copy_range(from, to, at, end);
		if (r < 0)
			return r;
		at = end;
	}
	return r;
}

/* A file without a name, with room for so much. */
static int make_file(uint64_t bytes)
{
	const char *tmp = getenv("TMPDIR");
	_cleanup_fd_ int fd = open(tmp && *tmp ? tmp : "/tmp", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
	struct statvfs fs;
	int keep;

	if (fd >= 0 && !fstatvfs(fd, &fs) && bytes > (uint64_t)fs.f_bavail * fs.f_frsize)
		return -ENOSPC;
	if (fd < 0 && bytes <= MOST_MEMORY)
		fd = memfd_create("gasflame-copy", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	keep = fd;
	fd = -1;
	return keep;
}

/* Tells one generation of a log from the next: SQLite gives each new salts in its header. */
struct generation {
	dev_t device;
	ino_t inode;
	uint8_t header[32];
};

static int generation_of(const struct capturefile *f, struct generation *ret)
{
	_cleanup_fd_ int fd = openat(f->folder, f->wal_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;

	memset(ret, 0, sizeof(*ret));
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	ret->device = st.st_dev;
	ret->inode = st.st_ino;
	return S_ISREG(st.st_mode) && pread(fd, ret->header, sizeof(ret->header), 0) < 0 ? -errno : 0;
}

/*
 * Copies the file, then its log. A live recorder may be moving its log into the
 * file meanwhile: every page that it writes there is in the log as well, so the
 * two copies agree as long as the log was not restarted between the two looks
 * at it. -EAGAIN if it was.
 */
static int copy_once(const struct capturefile *f, int main, int wal)
{
	struct generation before, after;
	int r;

	if ((r = generation_of(f, &before)) < 0 || (r = copy_file(f->main, main)) < 0 ||
	    (r = copy_file(f->wal, wal)) < 0 || (r = generation_of(f, &after)) < 0)
		return r;
	return memcmp(&before, &after, sizeof(before)) ? -EAGAIN : 0;
}

static int copy_both(struct capturefile *f)
{
	_cleanup_fd_ int main = make_file(f->bytes), wal = make_file(f->bytes);
	int r = main < 0 ? main : wal < 0 ? wal : -EAGAIN;

	for (int try = 0; try < COPY_TRIES && r == -EAGAIN; try++)
		r = copy_once(f, main, wal);
	if (r < 0)
		return r;
	fd_close(&f->main);
	fd_close(&f->wal);
	f->main = main;
	f->wal = wal;
	main = wal = -1;
	return 0;
}

int capturecopy_measure(struct capturefile *f, const char *path, struct err *err)
{
	int r;

	f->bytes = 0;
	if ((r = measure(f->main, &f->bytes)) >= 0)
		r = measure(f->wal, &f->bytes);
	if (r == -EFBIG)
		return err_set(err, EBADMSG, "%s is full of holes, as no recorder leaves them: it is damaged, or made to waste "
					     "time", path);
	return r < 0 ? err_errno(err, -r, "cannot read %s", path) : 0;
}

int capturecopy_make(struct capturefile *f, const char *path, struct err *err)
{
	int r = f->wal >= 0 ? copy_both(f) : 0;

	if (r == -ENOSPC)
		return err_set(err, ENOSPC, "there is no room to copy %s and its log, to read them as they are at one moment: "
					    "set TMPDIR to a place with more, or wait until the recording has ended", path);
	return r < 0 ? err_errno(err, -r, "cannot copy %s and its log to read them", path) : 0;
}
