#include "base/file/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"

enum { LINKS_MAX = 8 };

/* --- the file that has the name now --- */

/* The number in /dev/stdout and the like, or -1: such a name is a descriptor of ours, not a file. */
static int named_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	uint64_t n;

	if (!strcmp(path, "/dev/stdout"))
		return STDOUT_FILENO;
	if (!strcmp(path, "/dev/stderr"))
		return STDERR_FILENO;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++)
		if (str_starts(path, folders[i]) &&
		    !str_parse_uint(path + strlen(folders[i]), 0, INT_MAX, &n))
			return n;
	return -1;
}

static int open_descriptor(struct newfile *f, int number, struct err *err)
{
	f->fd = fcntl(number, F_DUPFD_CLOEXEC, 3);
	return f->fd < 0 ? err_errno(err, errno, "cannot write to %s", f->path) : 0;
}

/* Opens a terminal, /dev/null or a FIFO, by the handle that was checked. */
static int open_special(struct newfile *f, struct err *err)
{
	_cleanup_fd_ int handle = openat(f->folder, f->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	char path[64];

	if (handle < 0 || fstat(handle, &st))
		return err_errno(err, errno, "cannot open %s", f->path);
	if (!S_ISCHR(st.st_mode) && !S_ISFIFO(st.st_mode))
		return err_set(err, EEXIST, "%s is no file that could be written: name another with -o", f->path);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	f->fd = open(path, O_WRONLY | O_NOCTTY | O_CLOEXEC);
	return f->fd < 0 ? err_errno(err, errno, "cannot write to %s", f->path) : 0;
}

/*
 * A file in a folder where none may be made, or that is a mount of its own (into a container): only its
 * content can be replaced. It must be ours and have no other name.
 */
static int open_in_place(struct newfile *f, int code, struct err *err)
{
	struct stat st;
	int fd = openat(f->folder, f->name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_nlink == 1 && st.st_uid == geteuid() &&
	    !ftruncate(fd, 0)) {
		f->fd = fd;
		return 0;
	}
	fd_close(&fd);
	return err_errno(err, code, "cannot make %s", f->path);
}

static bool is_mounted(int folder, const char *name)
{
	struct statx stx;

	return !statx(folder, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE, &stx) &&
	       stx.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

/* Opens the folder that a link leads to; 1: check the file there next. */
static int follow(struct newfile *f, unsigned how, const struct stat *st, int *links, struct err *err)
{
	_cleanup_free_ char *old = f->name;
	char text[PATH_MAX];
	const char *name;
	ssize_t n;
	int next;

	if (!(how & NEWFILE_TYPED) || !geteuid() || (st->st_uid && st->st_uid != geteuid()) ||
	    ++*links > LINKS_MAX) {
		old = NULL;
		return err_set(err, ELOOP, "%s is a symbolic link, which is not followed%s: name the file itself with -o",
			       f->path, geteuid() ? "" : " as root");
	}
	n = readlinkat(f->folder, f->name, text, sizeof(text) - 1);
	f->name = NULL;
	if (n < 0)
		return err_errno(err, errno, "cannot follow %s", f->path);
	text[n] = 0;
	next = folder_open_at(f->folder, text, &name, err);
	if (next < 0)
		return next;
	fd_close(&f->folder);
	f->folder = next;
	f->name = mem_strdup(name);
	return 1;
}

/* --- making it --- */

static int make(struct newfile *f, mode_t mode)
{
	uint64_t random;
	struct stat st;

	for (int try = 0; try < 16; try++) {
		if (getrandom(&random, sizeof(random), 0) != sizeof(random))
			return -EIO;
		snprintf(f->temporary, sizeof(f->temporary), ".gasflame-%016llx", (unsigned long long)random);
		f->fd = openat(f->folder, f->temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (f->fd >= 0 || errno != EEXIST)
			break;
	}
	if (f->fd < 0 || fstat(f->fd, &st)) {
		int code = errno;

		f->temporary[0] = 0;
		return -code;
	}
	f->device = st.st_dev;
	f->inode = st.st_ino;
	return 0;
}

/* Checks the file that has the name, and whether it may be replaced; 1: look again, 0: f is open, or a new
 * file may be made. */
static int look(struct newfile *f, unsigned how, int *links, bool *ret_there, struct err *err)
{
	struct stat st;

	*ret_there = false;
	if (!*f->name)
		return err_set(err, EISDIR, "%s is a folder: name a file in it", f->path);
	if (fstatat(f->folder, f->name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : err_errno(err, errno, "cannot make %s", f->path);
	if (f->once)
		return err_set(err, EEXIST, "%s exists", f->path);
	if (S_ISLNK(st.st_mode))
		return follow(f, how, &st, links, err);
	if (S_ISDIR(st.st_mode))
		return err_set(err, EISDIR, "%s is a folder: name a file in it", f->path);
	if (!S_ISREG(st.st_mode) && how & NEWFILE_TYPED)
		return open_special(f, err);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EEXIST, "%s is no regular file: it is left alone, name another with -o", f->path);
	/* Permission to replace a file is not permission to write to it. */
	if (faccessat(f->folder, f->name, W_OK, AT_EACCESS))
		return err_errno(err, errno, "cannot write %s", f->path);
	*ret_there = true;
	return 0;
}

int newfile_open(struct newfile *f, const char *path, unsigned how, mode_t mode, const struct owner *owner,
		 struct err *err)
{
	int number = how & NEWFILE_TYPED ? named_descriptor(path) : -1, links = 0, r;
	const char *name = "";
	bool there;

	*f = (struct newfile){ .fd = -1, .folder = -1, .path = mem_strdup(path), .once = how & NEWFILE_ONCE };
	if (owner)
		f->owner = *owner;
	if (number >= 0)
		return open_descriptor(f, number, err);
	f->folder = how & NEWFILE_FOLDERS ? folder_make(path, &f->owner, &name, err) : folder_open(path, &name, err);
	if (f->folder < 0)
		return f->folder;
	f->name = mem_strdup(name);
	do
		r = look(f, how, &links, &there, err);
	while (r > 0);
	if (r || f->fd >= 0)
		return r;
	if (there && how & NEWFILE_TYPED && is_mounted(f->folder, f->name))
		return open_in_place(f, EBUSY, err);
	r = make(f, mode);
	if (!r)
		return 0;
	if (there && how & NEWFILE_TYPED && (r == -EACCES || r == -EPERM))
		return open_in_place(f, -r, err);
	return err_errno(err, -r, "cannot make %s", f->path);
}

/* --- its name --- */

int newfile_rename_once(int folder, const char *from, const char *to)
{
	if (!renameat2(folder, from, folder, to, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	/* A file system that does not know this. */
	if (linkat(folder, from, folder, to, 0))
		return -errno;
	unlinkat(folder, from, 0);
	return 0;
}

static int put_name(struct newfile *f, struct err *err)
{
	int r = 0;

	if (!f->temporary[0])
		return 0;
	if (f->once)
		r = newfile_rename_once(f->folder, f->temporary, f->name);
	else if (renameat(f->folder, f->temporary, f->folder, f->name))
		r = -errno;
	if (r == -EEXIST)
		return err_set(err, EEXIST, "%s exists", f->path);
	if (r)
		return err_errno(err, -r, "cannot make %s", f->path);
	f->temporary[0] = 0;
	return 0;
}

/* The file stays ours where it cannot be given away. */
static void give(const struct newfile *f)
{
	if (f->owner.given && f->temporary[0] && fchown(f->fd, f->owner.uid, f->owner.gid))
		return;
}

int newfile_show(struct newfile *f, struct err *err)
{
	give(f);
	return put_name(f, err);
}

int newfile_keep(struct newfile *f, struct err *err)
{
	int fd = f->fd;

	give(f);
	f->fd = -1;
	/* Some file systems say only now that there was no space. */
	if (close(fd))
		return err_errno(err, errno, "cannot write %s", f->path);
	return put_name(f, err);
}

void newfile_done(struct newfile *f)
{
	fd_close(&f->fd);
	if (f->temporary[0])
		folder_remove(f->folder, f->temporary, f->device, f->inode);
	fd_close(&f->folder);
	free(f->path);
	free(f->name);
	*f = (struct newfile){ .fd = -1, .folder = -1 };
}

int newfile_write(const char *path, unsigned how, mode_t mode, const struct owner *owner, const void *data, size_t n,
		  struct err *err)
{
	_cleanup_(newfile_done) struct newfile f;
	int r = newfile_open(&f, path, how, mode, owner, err);

	if (r)
		return r;
	r = fd_write_all(f.fd, data, n);
	if (r)
		return err_errno(err, -r, "cannot write %s", path);
	return newfile_keep(&f, err);
}
