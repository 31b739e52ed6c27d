/*
 * sinkfiles.c - windows as captures in a folder, by target and time: FOLDER/reth-1/2026-11-17/020500-42.gasflame.
 *
 * A file has its name when it is whole and on the disk. The folders are made by us and must be writable by nobody else: who could
 * write there could have us write, and remove, elsewhere. Only files and folders with names of this form are ever removed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/folder.h"
#include "base/file/newfile.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "fleet/sink/sinkrotate.h"
#include "fleet/sink/sinktypes.h"
#include "fleet/storeurl.h"

static const uint64_t hour_ns = 3600ULL * 1000000000;
enum { COPY_BYTES = 256 << 10 };

struct files {
	char *folder; /* ends in "/" */
	const struct sink_options *o;
	struct sinkrotate state;
	uint64_t looked_mono_ns; /* when all of it was looked through; 0 = never */
};

static void files_close(void *sink)
{
	struct files *f = sink;

	if (!f)
		return;
	free(f->folder);
	free(f);
}

static int files_open(const struct sink_options *o, void **ret, struct err *err)
{
	const char *path = strstr(o->url, "://") + 3;
	_cleanup_free_ char *plain = storeurl_decode(path, strlen(path));
	struct files *f;

	if (!plain || *plain != '/' || !strcmp(plain, "/"))
		return err_set(err, EINVAL, "its address names no folder: file:///var/lib/gasflame/captures, with %%25 for a %%");
	f = mem_alloc(sizeof(*f));
	f->folder = mem_printf("%s/", plain);
	f->o = o;
	*ret = f;
	return 0;
}

/* --- folders --- */

static int check_folder(int fd, const char *path, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot look at the folder %s", path);
	if ((st.st_uid && st.st_uid != geteuid()) || st.st_mode & 022)
		return err_set(err, EACCES, "others may write to the folder %s: captures go only where nobody else can (chmod 700)", path);
	return 0;
}

static int base_open(const struct files *f, struct err *err)
{
	const char *name;
	int fd = folder_make(f->folder, NULL, &name, err), r;

	if (fd < 0)
		return fd;
	r = check_folder(fd, f->folder, err);
	if (r)
		fd_close(&fd);
	return r ? r : fd;
}

/* The folder of that name in another, made if it is missing; closes the other. */
static int enter(int at, const char *name, struct err *err)
{
	_cleanup_fd_ int outer = at;
	int fd, r;

	if (mkdirat(outer, name, 0700) && errno != EEXIST)
		return err_errno(err, errno, "cannot make the folder %s", name);
	fd = openat(outer, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_errno(err, errno, "cannot open the folder %s", name);
	r = check_folder(fd, name, err);
	if (r)
		fd_close(&fd);
	return r ? r : fd;
}

/* The folder of a window's path "target/day/file". */
static int enter_all(const struct files *f, const char *path, struct err *err)
{
	int fd = base_open(f, err);

	while (fd >= 0 && strchr(path, '/')) {
		_cleanup_free_ char *part = mem_strndup(path, strcspn(path, "/"));

		fd = enter(fd, part, err);
		path += strlen(part) + 1;
	}
	return fd;
}

/* --- a window --- */

static int copy(const struct sink_window *w, int to, struct err *err)
{
	_cleanup_free_ char *piece = mem_alloc(COPY_BYTES);
	uint64_t at = 0;
	int r;

	while (at < w->bytes) {
		ssize_t n = pread(w->fd, piece, MIN(w->bytes - at, (uint64_t)COPY_BYTES), at);

		if (n <= 0)
			return err_set(err, EIO, "the window's file ends before its end: %llu of %llu bytes", (unsigned long long)at,
				       (unsigned long long)w->bytes);
		r = fd_write_all(to, piece, n);
		if (r)
			return err_errno(err, -r, "cannot write the capture");
		at += n;
	}
	return fsync(to) ? err_errno(err, errno, "cannot write the capture") : 0;
}

/* Is it the same window that has this name already? 0: yes; else -EEXIST. */
static int compare(const struct sink_window *w, int folder, const char *name, struct err *err)
{
	_cleanup_free_ char *a = mem_alloc(COPY_BYTES), *b = mem_alloc(COPY_BYTES);
	_cleanup_fd_ int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	bool same = fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && (uint64_t)st.st_size == w->bytes;

	for (uint64_t at = 0; same && at < w->bytes;) {
		size_t n = MIN(w->bytes - at, (uint64_t)COPY_BYTES);

		same = pread(fd, a, n, at) == (ssize_t)n && pread(w->fd, b, n, at) == (ssize_t)n && !memcmp(a, b, n);
		at += n;
	}
	return same ? 0 : err_set(err, EEXIST, "another file has the name of this window: %s", name);
}

/* newfile.h walks the path again: what it found has to be the folder that was checked. */
static bool is_same_folder(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int write_file(const struct files *f, const struct sink_window *w, int folder, const char *path, struct err *err)
{
	_cleanup_free_ char *whole = mem_printf("%s%s", f->folder, path);
	_cleanup_(newfile_done) struct newfile new;
	int r = newfile_open(&new, whole, NEWFILE_ONCE, 0600, NULL, err);

	if (!r && !is_same_folder(new.folder, folder))
		r = err_set(err, EAGAIN, "the folder of %s was moved away meanwhile", path);
	if (!r)
		r = copy(w, new.fd, err);
	if (!r)
		r = newfile_keep(&new, err);
	if (!r) {
		_cleanup_fd_ int listing = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		/* The name, too, is on the disk when it counts as delivered. */
		if (listing < 0 || fsync(listing))
			r = err_errno(err, errno, "cannot write the folder of %s", path);
	}
	return r;
}

/* Room for so many bytes more, as far as there is a limit. */
static int make_room(struct files *f, uint64_t bytes, struct err *err)
{
	const struct sinkrotate_limits limits = { f->o->keep_bytes, f->o->keep_ns, bytes };
	bool full = f->o->keep_bytes && f->state.bytes + bytes > f->o->keep_bytes, late = clock_mono_ns() - f->looked_mono_ns >= hour_ns;
	_cleanup_fd_ int base = -1;

	if (!f->o->keep_bytes && !f->o->keep_ns)
		return 0;
	if (f->o->keep_bytes && bytes > f->o->keep_bytes)
		return err_set(err, EBADMSG, "the window alone is larger than all that may be kept");
	if (f->looked_mono_ns && !full && !late)
		return 0;
	base = base_open(f, err);
	if (base < 0)
		return base;
	f->looked_mono_ns = clock_mono_ns();
	return sinkrotate(base, &limits, clock_wall_ns(), &f->state, err);
}

/* What the header promises of a sink's errors. */
static int meaning_of(int r)
{
	switch (r) {
	case 0:
	case -EEXIST:
	case -EACCES:
	case -EAGAIN:
	case -EBADMSG:
		return r;
	case -ELOOP:
	case -EPERM:
	case -EROFS:
		return -EACCES;
	case -ENOENT:
	case -ENOTDIR:
		return -ENXIO;
	default:
		return -EIO; /* a full disk: it may have room again */
	}
}

static int files_send(void *sink, const struct sink_window *w, struct err *err)
{
	struct files *f = sink;
	_cleanup_(buf_done) struct buf path = { 0 };
	_cleanup_fd_ int folder = -1;
	int r = make_room(f, w->bytes, err);

	sinkname_put_path(&path, w);
	if (!r) {
		folder = enter_all(f, path.data, err);
		r = folder < 0 ? folder : write_file(f, w, folder, path.data, err);
	}
	if (r == -EEXIST && folder >= 0)
		return compare(w, folder, str_base_name(path.data), err);
	if (!r)
		f->state.bytes += w->bytes;
	r = meaning_of(r);
	if (r && err)
		err->code = -r;
	return r;
}

const struct sink_type sink_files = {
	.schemes = { "file" },
	.describe = "captures in a folder, by target and time, the oldest of which go",
	.open = files_open,
	.send = files_send,
	.close = files_close,
	.takes = SINK_KEEP,
};
