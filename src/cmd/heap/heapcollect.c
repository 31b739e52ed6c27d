/*
 * heapcollect.c - `heap dump --collect`: the dumps that jemalloc wrote by itself, from the target's own root.
 *
 * It only reads, and opens the target's files below its root, so that no link leads outside.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "cmd/heap/heap.h"
#include "import/jemalloc/heapdumps.h"
#include "target/open.h"
#include "target/proc.h"

static const size_t limit_bytes = 2ULL << 30;

/* The folder of a path in the process, as the process names it: absolute. Caller frees. NULL: it is gone. */
static char *folder_of(pid_t pid, const char *prefix)
{
	const char *slash = strrchr(prefix, '/');
	char link[64], cwd[4096];
	ssize_t n;

	if (*prefix == '/')
		return mem_strndup(prefix, slash - prefix);
	snprintf(link, sizeof(link), "/proc/%d/cwd", pid);
	n = readlink(link, cwd, sizeof(cwd) - 1);
	if (n < 0)
		return NULL;
	cwd[n] = 0;
	return slash ? mem_printf("%s/%.*s", cwd, (int)(slash - prefix), prefix) : mem_strdup(cwd);
}

/* A dump that vanished, or is just being written, is skipped. */
static int add_file(struct heapdumps *d, pid_t pid, const char *path, const char *name, struct err *err)
{
	_cleanup_free_ char *text = NULL;
	_cleanup_fd_ int fd = -1;
	struct stat st;
	size_t n;
	int r = target_open_path(pid, path, &fd, err);

	if (r)
		return r == -ENOENT ? 0 : r;
	r = fd_read_file(fd, limit_bytes, &text, &n);
	if (r < 0)
		return err_errno(err, -r, "cannot read %s of process %d", path, pid);
	if (!n || fstat(fd, &st) < 0)
		return 0;
	return heapdumps_add_text(d, name, text, n, st.st_mtim.tv_sec * 1000000000ULL + st.st_mtim.tv_nsec,
				  err);
}

int heap_collect(struct heapdumps *d, pid_t pid, const char *prefix, struct err *err)
{
	const char *slash = strrchr(prefix, '/');
	_cleanup_free_ char *folder = folder_of(pid, prefix), *begin = NULL;
	struct proc_status status = { 0 };
	_cleanup_fd_ int handle = -1;
	int r = 0, names;
	DIR *dir;

	if (!folder || proc_status(pid, &status) < 0)
		return err_set(err, ESRCH, "process %d has ended", pid);
	handle = target_open_folder(pid, *folder ? folder : "/", err);
	if (handle < 0)
		return handle;
	begin = mem_printf("%s.%d.", slash ? slash + 1 : prefix, status.inner_pid);
	/* Lists names only: files are opened below the root. */
	names = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = names < 0 ? NULL : fdopendir(names);
	if (!dir) {
		fd_close(&names);
		return err_errno(err, errno,
				 "cannot open the folder %s of process %d, where jemalloc writes its dumps",
				 folder, pid);
	}
	for (struct dirent *e; !r && (errno = 0, e = readdir(dir));) {
		_cleanup_free_ char *path = mem_printf("%s/%s", folder, e->d_name);

		if (str_starts(e->d_name, begin) && str_ends(e->d_name, ".heap"))
			r = add_file(d, pid, path, e->d_name, err);
	}
	if (!r && errno)
		r = err_errno(err, errno, "cannot read the folder %s of process %d", folder, pid);
	closedir(dir);
	heapdumps_order(d);
	if (!r && !d->list.n)
		r = err_set(err, ENOENT,
			    "there is no %s*.heap in %s of process %d: it has not written any yet "
			    "(lg_prof_interval and prof_gdump say when), or leave out --collect and "
			    "dumps are made now",
			    begin, folder, pid);
	return r;
}
