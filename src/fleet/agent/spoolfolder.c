#include "fleet/agent/spoolfolder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/file/folder.h"
#include "base/text/str.h"

enum { OPEN_FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, SINK_NAME_MAX = 200 };

static const char digits[] = "0123456789";

/* --- folders --- */

static int check(int fd, const char *name, mode_t forbidden, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(err, errno, "cannot look at the spool's folder %s", name);
	if (st.st_uid != geteuid())
		return err_set(err, EPERM, "the spool's folder %s belongs to user %u: give it to the user of the agent, or name another",
			       name, (unsigned)st.st_uid);
	if (st.st_mode & forbidden)
		return err_set(err, EPERM, "the spool's folder %s is open to other users: chmod 700 it, or name another", name);
	return 0;
}

/* The folder itself, by a path that leads into it: root's own links on the way are followed, and it may be one. */
static int walk_into(const char *folder, struct err *err)
{
	_cleanup_free_ char *inside = mem_printf("%s/", folder);
	const char *name;

	return folder_open(inside, &name, err);
}

static int make_root(const char *folder, struct err *err)
{
	_cleanup_free_ char *path = mem_strdup(folder);
	const char *name;
	_cleanup_fd_ int parent = -1, readable = -1;

	for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = 0;
	parent = folder_make(path, NULL, &name, err);
	if (parent < 0)
		return parent;
	if (*name && mkdirat(parent, name, 0700) && errno != EEXIST)
		return err_errno(err, errno, "cannot make the spool's folder %s", folder);
	readable = openat(parent, ".", OPEN_FOLDER);
	if (readable >= 0)
		fsync(readable);
	return 0;
}

int spoolfolder_open(const char *folder, bool makes, struct err *err)
{
	_cleanup_fd_ int handle = -1;
	int fd, r;

	if (!*folder)
		return err_set(err, EINVAL, "the spool has no folder: name one");
	handle = walk_into(folder, err);
	if (handle == -ENOENT && makes) {
		r = make_root(folder, err);
		if (r)
			return r;
		handle = walk_into(folder, err);
	}
	if (handle < 0)
		return handle;
	fd = openat(handle, ".", OPEN_FOLDER);
	if (fd < 0)
		return err_errno(err, errno, "cannot open the spool's folder %s", folder);
	/* Others may look at this one: those in it are closed to them. */
	r = check(fd, folder, 022, err);
	if (r)
		fd_close(&fd);
	return r ? r : fd;
}

int spoolfolder_open_in(int parent, const char *name, struct err *err)
{
	int fd = openat(parent, name, OPEN_FOLDER), r;

	if (fd < 0 && errno == ENOENT) {
		if (mkdirat(parent, name, 0700) && errno != EEXIST)
			return err_errno(err, errno, "cannot make the spool's folder %s", name);
		/* What is put into it lasts only if it does. */
		if (fsync(parent))
			return err_errno(err, errno, "cannot make the spool's folder %s last", name);
		fd = openat(parent, name, OPEN_FOLDER);
	}
	if (fd < 0 && (errno == ENOTDIR || errno == ELOOP))
		return err_set(err, ENOTDIR, "%s in the spool is no folder: remove it", name);
	if (fd < 0)
		return err_errno(err, errno, "cannot open the spool's folder %s", name);
	r = check(fd, name, 077, err);
	if (r)
		fd_close(&fd);
	return r ? r : fd;
}

int spoolfolder_open_sink(int root, const char *of, const char *sink, struct err *err)
{
	_cleanup_fd_ int folder = spoolfolder_open_in(root, of, err);

	return folder < 0 ? folder : spoolfolder_open_in(folder, sink, err);
}

int spoolfolder_lock(int root, struct err *err)
{
	_cleanup_fd_ int fd = openat(root, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return err_errno(err, errno, "cannot open the file lock of the spool");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, EPERM, "lock in the spool is no file of ours: remove it");
	while ((r = flock(fd, LOCK_EX | LOCK_NB)) && errno == EINTR)
		;
	if (r && errno == EWOULDBLOCK)
		return err_set(err, EBUSY, "another agent uses this spool: end it, or name another folder");
	if (r)
		return err_errno(err, errno, "cannot lock the spool");
	r = fd;
	fd = -1;
	return r;
}

int spoolfolder_each(int folder, spoolfolder_fn *fn, void *context, struct err *err)
{
	/* A copy of the descriptor would share its position. */
	int copy = openat(folder, ".", OPEN_FOLDER), r = 0;
	DIR *dir = copy < 0 ? NULL : fdopendir(copy);

	if (!dir) {
		r = err_errno(err, errno, "cannot list a folder of the spool");
		fd_close(&copy);
		return r;
	}
	while (!r) {
		struct dirent *e;

		errno = 0;
		e = readdir(dir);
		if (!e) {
			r = errno ? err_errno(err, errno, "cannot list a folder of the spool") : 0;
			break;
		}
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			r = fn(context, folder, e->d_name);
	}
	closedir(dir);
	return r;
}

/* --- names --- */

/* The end of "20261118T040000.123Z-000017-7f3a9c12.gasflame" in name; NULL: it does not begin like this. */
static const char *window_end(const char *name, uint64_t *ret_wall_ns)
{
	static const char form[] = "########T######.###Z-", ending[] = ".gasflame";
	struct tm tm = { 0 };
	const char *p = name;
	unsigned ms;
	size_t n;

	for (const char *f = form; *f; f++, p++)
		if (*f == '#' ? *p < '0' || *p > '9' : *p != *f)
			return NULL;
	if (sscanf(name, "%4d%2d%2dT%2d%2d%2d.%3u", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec,
		   &ms) != 7)
		return NULL;
	n = strspn(p, digits);
	if (n < 6 || n > 20 || p[n] != '-')
		return NULL;
	p += n + 1;
	if (strspn(p, "0123456789abcdef") != 8 || strncmp(p + 8, ending, strlen(ending)) != 0)
		return NULL;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	if (ret_wall_ns)
		*ret_wall_ns = MAX(timegm(&tm), 0) * UINT64_C(1000000000) + ms * UINT64_C(1000000);
	return p + 8 + strlen(ending);
}

bool spoolfolder_is_window(const char *name, uint64_t *ret_wall_ns)
{
	const char *end = window_end(name, ret_wall_ns);

	return end && !*end;
}

bool spoolfolder_is_unfinished(const char *name)
{
	const char *end = window_end(name, NULL);

	/* The second is how newfile.h names what it has not finished. */
	return (end && str_starts(end, ".part")) || str_starts(name, ".gasflame-");
}

bool spoolfolder_is_sink(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");

	return n && !name[n] && n <= SINK_NAME_MAX && *name != '.';
}
