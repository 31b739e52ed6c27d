#include "target/open.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/text/str.h"
#include "target/proc.h"

/*
 * Every open has two steps. O_PATH gives a handle on the file, of any type, and
 * runs no driver's open(): a FIFO does not block, a device does nothing. Only
 * when fstat() says that it is a regular file (and the expected one) is that
 * very handle opened for reading, through /proc/self/fd, so that the file
 * cannot be swapped between the check and the open.
 */
enum { OPEN_HANDLE = O_PATH | O_CLOEXEC, OPEN_READ = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC };

/* -EINVAL: not a regular file. */
static int read_handle(int handle, int *ret_fd)
{
	struct stat st;
	char path[64];
	int fd;

	if (fstat(handle, &st))
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	fd = open(path, OPEN_READ);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

/* On some file systems (btrfs, overlayfs) st_dev of a file is not the device in /proc/PID/maps, which is
 * the mount's. */
static bool mount_device(int handle, pid_t pid, unsigned *ret_major, unsigned *ret_minor)
{
	_cleanup_free_ char *text = NULL;
	struct statx stx;
	char path[64];

	if (statx(handle, "", AT_EMPTY_PATH, STATX_MNT_ID, &stx) || !(stx.stx_mask & STATX_MNT_ID))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	if (fd_read_path(path, 16 << 20, &text, NULL))
		return false;
	for (char *p = text; p && *p; p = strchr(p, '\n')) {
		unsigned long long id;

		p += *p == '\n';
		if (sscanf(p, "%llu %*u %u:%u", &id, ret_major, ret_minor) == 3 && id == stx.stx_mnt_id)
			return true;
	}
	return false;
}

static bool is_mapped_file(int handle, pid_t pid, const struct proc_mapping *m)
{
	unsigned major, minor;
	struct stat st;

	if (fstat(handle, &st) || st.st_ino != m->inode)
		return false;
	if (major(st.st_dev) == m->device_major && minor(st.st_dev) == m->device_minor)
		return true;
	return mount_device(handle, pid, &major, &minor) && major == m->device_major &&
	       minor == m->device_minor;
}

/* Kernels before 5.6, and sandboxes that forbid openat2: one component after the other, and no symlink
 * at all. Paths in maps have none. */
static int walk_below(int root, const char *path)
{
	_cleanup_free_ char *copy = mem_strdup(path);
	_cleanup_fd_ int at = fcntl(root, F_DUPFD_CLOEXEC, 0);
	char *save = NULL;

	if (at < 0)
		return -errno;
	for (char *part = strtok_r(copy, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
		struct stat st;
		int next;

		if (!strcmp(part, ".."))
			return -ELOOP;
		next = openat(at, part, OPEN_HANDLE | O_NOFOLLOW);
		if (next < 0)
			return -errno;
		fd_close(&at);
		at = next;
		if (fstat(at, &st))
			return -errno;
		if (S_ISLNK(st.st_mode))
			return -ELOOP;
	}
	root = at;
	at = -1;
	return root;
}

/* A handle on path below the folder called name, or -errno. */
static int handle_in(const char *name, const char *path)
{
	struct open_how how = { .flags = OPEN_HANDLE, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	_cleanup_fd_ int root = open(name, OPEN_HANDLE | O_DIRECTORY);

	if (root < 0)
		return -errno;
	/* EAGAIN: something was renamed while ".." was looked up. */
	for (int try = 0; try < 16; try++) {
		long fd = syscall(SYS_openat2, root, path, &how, sizeof(how));

		if (fd >= 0)
			return fd;
		if (errno == ENOSYS || errno == EPERM)
			return walk_below(root, path);
		if (errno != EAGAIN)
			return -errno;
	}
	return -EAGAIN;
}

/* A handle on path below the root folder of pid, or -errno. */
static int handle_below(pid_t pid, const char *path)
{
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/root", pid);
	if (access(name, F_OK) && errno == ENOENT)
		return -ESRCH;
	return handle_in(name, path);
}

static int explain(struct err *err, int code, pid_t pid, const char *path)
{
	switch (code) {
	case EINVAL:
		return err_set(err, code, "%s of process %d is not a regular file: not opened", path, pid);
	case ESRCH:
		return err_set(err, code, "process %d is gone", pid);
	case EACCES:
	case EPERM:
		return err_set(err, code,
			       "no permission to read %s of process %d: run as root or as its user", path,
			       pid);
	case ESTALE:
		return err_set(err, code,
			       "%s was replaced after process %d mapped it, and the mapped file cannot be "
			       "reached (CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN allows it)",
			       path, pid);
	default:
		return err_errno(err, code, "cannot open %s of process %d", path, pid);
	}
}

/* The link of the mapping itself: needs CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN. */
static int open_map_file(pid_t pid, const struct proc_mapping *m, int *ret_fd)
{
	_cleanup_fd_ int handle = -1;
	struct stat st;
	char path[128];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", pid, (unsigned long long)m->start,
		 (unsigned long long)m->end);
	handle = open(path, OPEN_HANDLE);
	if (handle < 0)
		return -errno;
	/* The inode tells whether the range was mapped again since maps was read. */
	if (fstat(handle, &st))
		return -errno;
	return st.st_ino == m->inode ? read_handle(handle, ret_fd) : -ESTALE;
}

/* The program itself can be opened through exe even when it was deleted, without any capability. */
static int open_exe(pid_t pid, const struct proc_mapping *m, int *ret_fd)
{
	_cleanup_fd_ int handle = -1;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	handle = open(path, OPEN_HANDLE);
	if (handle < 0)
		return -errno;
	return is_mapped_file(handle, pid, m) ? read_handle(handle, ret_fd) : -ESTALE;
}

static int open_by_name(pid_t pid, const struct proc_mapping *m, const char *path, int *ret_fd)
{
	_cleanup_fd_ int handle = handle_below(pid, path);

	if (handle < 0)
		return handle;
	return is_mapped_file(handle, pid, m) ? read_handle(handle, ret_fd) : -ESTALE;
}

int target_open_mapping(pid_t pid, const struct proc_mapping *m, int *ret_fd, struct err *err)
{
	static const char suffix[] = " (deleted)";
	int r;

	if (!m->inode)
		return err_set(err, ENOENT, "there is no file behind %s",
			       *m->path ? m->path : "anonymous memory");
	r = open_map_file(pid, m, ret_fd);
	if (!r)
		return 0;
	if (r == -EINVAL)
		return explain(err, EINVAL, pid, m->path);
	if (!open_exe(pid, m, ret_fd))
		return 0;
	if (*m->path != '/')
		return explain(err, -r, pid, m->path);
	r = open_by_name(pid, m, m->path, ret_fd);
	if (r && str_ends(m->path, suffix)) {
		/* The name may be there again, as another file: the inode tells. */
		_cleanup_free_ char *plain = mem_strndup(m->path, strlen(m->path) - (sizeof(suffix) - 1));

		r = open_by_name(pid, m, plain, ret_fd);
		if (r == -ENOENT)
			r = -ESTALE;
	}
	return r ? explain(err, -r, pid, m->path) : 0;
}

int target_open_path(pid_t pid, const char *path, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int handle = handle_below(pid, path);
	int r = handle < 0 ? handle : read_handle(handle, ret_fd);

	return r ? explain(err, -r, pid, path) : 0;
}

int target_open_folder(pid_t pid, const char *path, struct err *err)
{
	char cwd[64];
	int fd;

	snprintf(cwd, sizeof(cwd), "/proc/%d/cwd", pid);
	fd = strcmp(path, ".") ? handle_below(pid, path) : open(cwd, OPEN_HANDLE | O_DIRECTORY);
	if (fd < 0)
		return explain(err, strcmp(path, ".") ? -fd : errno, pid, path);
	return fd;
}

int target_open_in(int folder, const char *name, int *ret_fd)
{
	_cleanup_fd_ int handle = openat(folder, name, OPEN_HANDLE | O_NOFOLLOW);

	return handle < 0 ? -errno : read_handle(handle, ret_fd);
}

int target_open_made(pid_t pid, int folder, const char *name, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int handle = openat(folder, name, OPEN_HANDLE | O_NOFOLLOW);
	struct proc_status status = { 0 };
	struct stat st;
	int r;

	if (handle < 0)
		return explain(err, errno, pid, name);
	if (proc_status(pid, &status) < 0)
		return explain(err, ESRCH, pid, name);
	if (fstat(handle, &st) || !S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != status.euid)
		return err_set(err, EPERM, "%s is not a file that process %d made: not opened", name, pid);
	r = read_handle(handle, ret_fd);
	return r ? explain(err, -r, pid, name) : 0;
}

int target_open_below(const char *root, const char *path, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int handle = handle_in(root, path);
	int r = handle < 0 ? handle : read_handle(handle, ret_fd);

	if (r == -EINVAL)
		return err_set(err, EINVAL, "%s below %s is not a regular file", path, root);
	return r ? err_errno(err, -r, "cannot open %s below %s", path, root) : 0;
}

int target_open_host(const char *path, int *ret_fd, struct err *err)
{
	_cleanup_fd_ int handle = open(path, OPEN_HANDLE);
	int r;

	if (handle < 0)
		return err_errno(err, errno, "cannot open %s", path);
	r = read_handle(handle, ret_fd);
	if (r == -EINVAL)
		return err_set(err, -r, "%s is not a regular file", path);
	return r ? err_errno(err, -r, "cannot open %s", path) : 0;
}
