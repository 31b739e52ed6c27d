#include "target/log/markerfind.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/mem.h"
#include "target/log/markerfile.h"
#include "target/open.h"
#include "target/proc.h"

/* The thread of the process that its own namespace knows by that number; 0: there is none. */
static pid_t outer_thread(pid_t pid, pid_t inner)
{
	struct proc_ids threads = { 0 };
	struct proc_status status;
	pid_t found = 0;

	if (proc_threads(pid, &threads) < 0)
		return 0;
	for (size_t i = 0; i < threads.list.n && !found; i++)
		if (!proc_status(threads.list.v[i], &status) && status.inner_pid == inner)
			found = threads.list.v[i];
	vec_done(&threads.list);
	return found;
}

/* Is it this process that the file's name says? A child has its parent's files open, too. */
static bool is_own(pid_t pid, const char *path, pid_t *ret_tid)
{
	struct proc_status status;
	pid_t named, tid;

	if (!markerfile_is_name(path, &named, &tid) || proc_status(pid, &status) < 0 || named != status.inner_pid)
		return false;
	*ret_tid = !tid ? 0 : status.inner_pid == pid ? tid : outer_thread(pid, tid);
	return true;
}

/* The file behind a descriptor of the process: through the link, which needs no name to be right. */
static int open_descriptor(pid_t pid, const char *link)
{
	_cleanup_fd_ int handle = open(link, O_PATH | O_CLOEXEC);
	struct proc_status status;
	struct stat st;
	char path[64];

	if (handle < 0 || fstat(handle, &st) || proc_status(pid, &status) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1 ||
	    st.st_uid != status.euid)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", handle);
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

void markerfind_open(pid_t pid, markerfind_fn *fn, void *context)
{
	char folder[64];
	struct dirent *entry;
	DIR *dir;

	snprintf(folder, sizeof(folder), "/proc/%d/fd", pid);
	dir = opendir(folder);
	while (dir && (entry = readdir(dir))) {
		_cleanup_free_ char *link = mem_printf("%s/%s", folder, entry->d_name);
		char path[4096];
		ssize_t n = *entry->d_name == '.' ? -1 : readlink(link, path, sizeof(path) - 1);
		pid_t tid;
		int fd;

		if (n <= 0)
			continue;
		path[n] = 0;
		if (!strstr(path, "/marker-") || !is_own(pid, path, &tid))
			continue;
		fd = open_descriptor(pid, link);
		if (fd >= 0)
			fn(context, pid, tid, fd);
	}
	if (dir)
		closedir(dir);
}

void markerfind_mapped(pid_t pid, const char *path, markerfind_fn *fn, void *context)
{
	const char *slash = strrchr(path, '/');
	_cleanup_free_ char *folder = NULL;
	_cleanup_fd_ int at = -1;
	pid_t tid;
	int fd = -1;

	if (*path != '/' || !slash || !is_own(pid, path, &tid))
		return;
	folder = slash == path ? mem_strdup("/") : mem_strndup(path, slash - path);
	at = target_open_folder(pid, folder, NULL);
	if (at >= 0 && !target_open_made(pid, at, slash + 1, &fd, NULL))
		fn(context, pid, tid, fd);
}

static int64_t offset_of(const char *who)
{
	char path[64];
	_cleanup_free_ char *text = NULL;
	long long seconds, ns;
	const char *line;

	snprintf(path, sizeof(path), "/proc/%s/timens_offsets", who);
	if (fd_read_path(path, 4096, &text, NULL) < 0)
		return 0;
	line = strstr(text, "monotonic");
	if (!line || sscanf(line, "monotonic %lld %lld", &seconds, &ns) != 2 || seconds > INT32_MAX || seconds < -(long long)INT32_MAX)
		return 0;
	return seconds * 1000000000LL + ns;
}

int64_t markerfind_clock(pid_t pid)
{
	char who[16];

	snprintf(who, sizeof(who), "%d", pid);
	return offset_of("self") - offset_of(who);
}
