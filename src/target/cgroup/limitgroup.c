#include "target/cgroup/limitgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "target/cgroup/cgroupfile.h"
#include "target/cgroup/cgroupmemory.h"
#include "target/cgroup/cgrouppath.h"

enum { GUARD_POLL_US = 100000 };

/* --- files --- */

static int write_file(const char *folder, const char *name, const char *text)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", folder, name);
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd_write_all(fd, text, strlen(text));
}

static bool has_file(const char *folder, const char *name)
{
	_cleanup_free_ char *path = mem_printf("%s/%s", folder, name);

	return !access(path, F_OK);
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *at = text; at && (at = strstr(at, word)); at += n)
		if ((at == text || strchr(" \n,", at[-1])) && (!at[n] || strchr(" \n,", at[n])))
			return true;
	return false;
}

/* --- where groups are --- */

/* A line: id parent major:minor root point options - type source super-options */
char *limitgroup_parse_mount(const char *mountinfo, bool v2, const char *path)
{
	_cleanup_free_ char *copy = mem_strdup(mountinfo);
	char *save = NULL;

	for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char root[1024], point[1024], type[32], super[512], *dash = strstr(line, " - ");
		size_t n;

		if (!dash || sscanf(line, "%*s %*s %*s %1023s %1023s", root, point) != 2 ||
		    sscanf(dash + 3, "%31s %*s %511s", type, super) != 2)
			continue;
		if (strcmp(type, v2 ? "cgroup2" : "cgroup") || (!v2 && !has_word(super, "memory")))
			continue;
		/* A container sees a part of the tree only. */
		n = strcmp(root, "/") ? strlen(root) : 0;
		if (n && (strncmp(path, root, n) || (path[n] && path[n] != '/')))
			n = 0;
		path += n;
		return mem_printf("%s%s", point, strcmp(path, "/") ? path : "");
	}
	return NULL;
}

int limitgroup_of(pid_t pid, struct limitgroup *ret, struct err *err)
{
	_cleanup_free_ char *mounts = cgroupfile_read("/proc/self", "mountinfo"), *groups = cgrouppath_text(pid);

	*ret = (struct limitgroup){ .guard = -1 };
	for (int v2 = 0; mounts && groups && v2 < 2 && !ret->path; v2++) {
		_cleanup_free_ char *line = cgroupfile_path(groups, v2 ? "" : "memory");

		ret->path = line ? limitgroup_parse_mount(mounts, v2, line) : NULL;
		ret->v2 = v2;
	}
	if (!ret->path)
		return err_set(err, ENOTSUP,
			       "there are no cgroups here that limit memory: mount them (mount -t cgroup2 "
			       "none /sys/fs/cgroup), or boot with cgroup_enable=memory");
	return 0;
}

/* --- making one --- */

static int make_failed(int e, const char *above, struct err *err)
{
	if (e == EACCES || e == EPERM || e == EROFS)
		return err_set(err, EPERM,
			       "no right to make a cgroup in %s: run it with sudo, or as a user in a group "
			       "of its own: systemd-run --user --scope -p Delegate=yes gasflame limit ...%s",
			       above,
			       e == EROFS
				       ? " (in a container cgroups are mounted read-only: run it on the host)"
				       : "");
	return err_errno(err, e, "cannot make a cgroup in %s", above);
}

/* Goes up until children get the memory controller. Returns a folder, caller frees; NULL with err. */
static char *find_above(struct limitgroup *own, struct err *err)
{
	_cleanup_free_ char *mounts = cgroupfile_read("/proc/self", "mountinfo");
	_cleanup_free_ char *top = mounts ? limitgroup_parse_mount(mounts, true, "/") : NULL;
	char *at = mem_strdup(own->path);

	for (;;) {
		_cleanup_free_ char *passed_on = cgroupfile_read(at, "cgroup.subtree_control");
		_cleanup_free_ char *there = cgroupfile_read(at, "cgroup.controllers");
		char *slash = strrchr(at, '/');

		if (passed_on && has_word(passed_on, "memory"))
			return at;
		if (!top || strlen(at) <= strlen(top) || !slash) {
			int r = there && has_word(there, "memory") ?
					write_file(at, "cgroup.subtree_control", "+memory") : -ENOTSUP;

			own->enabled = !r;
			if (!r)
				return at;
			if (r == -EACCES || r == -EPERM || r == -EROFS)
				make_failed(-r, at, err);
			else
				err_set(err, ENOTSUP,
					"the memory controller is not to be had in %s (cgroup.controllers): "
					"boot with cgroup_enable=memory, or run it on the host, outside of "
					"the container",
					at);
			free(at);
			return NULL;
		}
		*slash = 0;
	}
}

int limitgroup_make(const char *name, struct limitgroup *ret, struct err *err)
{
	struct limitgroup own;
	char *above;
	int r = limitgroup_of(getpid(), &own, err);

	*ret = (struct limitgroup){ .guard = -1 };
	if (r < 0)
		return r;
	above = own.v2 ? find_above(&own, err) : mem_strdup(own.path);
	if (above) {
		ret->path = mem_printf("%s/%s", above, name);
		ret->v2 = own.v2;
		ret->enabled = own.enabled;
		r = mkdir(ret->path, 0755) ? make_failed(errno, above, err) : 0;
	} else {
		r = err && err->code ? -err->code : -ENOTSUP;
	}
	/* The kernel fills the folder at once; elsewhere it is not a cgroup. */
	if (!r && !has_file(ret->path, ret->v2 ? "memory.max" : "memory.limit_in_bytes")) {
		r = err_set(err, ENOTSUP, "%s has no limit of memory: the memory controller is missing there",
			    ret->path);
		limitgroup_remove(ret);
	}
	if (r < 0)
		limitgroup_done(ret);
	free(above);
	limitgroup_done(&own);
	return r;
}

static bool machine_swaps(void)
{
	_cleanup_free_ char *text = cgroupfile_read("/proc", "meminfo");

	for (char *at = text ? strstr(text, "SwapTotal:") : NULL; at;)
		return strtoull(at + strlen("SwapTotal:"), NULL, 10) > 0;
	return false;
}

int limitgroup_limit(struct limitgroup *c, uint64_t memory_bytes, uint64_t swap_bytes, struct err *err)
{
	const char *memory = c->v2 ? "memory.max" : "memory.limit_in_bytes";
	const char *swap = c->v2 ? "memory.swap.max" : "memory.memsw.limit_in_bytes";
	char text[32];
	int r;

	snprintf(text, sizeof(text), "%llu", (unsigned long long)memory_bytes);
	r = write_file(c->path, memory, text);
	if (r < 0)
		return err_errno(err, -r, "cannot set %s/%s to %s", c->path, memory, text);
	if (swap_bytes == LIMITGROUP_UNLIMITED)
		return 0;
	if (!has_file(c->path, swap)) {
		if (!swap_bytes && !machine_swaps())
			return 0;
		return err_set(err, ENOTSUP,
			       "this kernel does not limit swap by cgroup (boot with swapaccount=1); without "
			       "--swap, or after swapoff -a, the rest works");
	}
	/* Version 1 limits both together. */
	snprintf(text, sizeof(text), "%llu", (unsigned long long)(swap_bytes + (c->v2 ? 0 : memory_bytes)));
	r = write_file(c->path, swap, text);
	return r < 0 ? err_errno(err, -r, "cannot set %s/%s to %s", c->path, swap, text) : 0;
}

int limitgroup_enter(const struct limitgroup *c, pid_t pid, struct err *err)
{
	char text[32];
	int r;

	snprintf(text, sizeof(text), "%d", pid);
	r = write_file(c->path, "cgroup.procs", text);
	return r < 0 ? err_errno(err, -r, "cannot move process %d into the cgroup %s", pid, c->path) : 0;
}

/* --- its end --- */

/* Restores the parent's controllers. Another group may use the controller by now: then it stays. */
static void give_back(const struct limitgroup *c)
{
	_cleanup_free_ char *above = mem_strdup(c->path);
	char *slash = strrchr(above, '/');

	if (!c->enabled || !slash)
		return;
	*slash = 0;
	write_file(above, "cgroup.subtree_control", "-memory");
}

int limitgroup_remove(struct limitgroup *c)
{
	/* A process that was killed a moment ago may still be leaving. */
	for (int i = 0; i < 20; i++) {
		if (!rmdir(c->path) || errno == ENOENT) {
			give_back(c);
			c->enabled = false;
			return 0;
		}
		if (errno != EBUSY || (i > 5 && limitgroup_processes(c)))
			break;
		usleep(20000);
	}
	return -errno;
}

static void __attribute__((noreturn)) guard(const struct limitgroup *c, int fd)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2 };
	char byte;

	setsid();
	for (size_t i = 0; i < ARRAY_LEN(ignored); i++)
		signal(ignored[i], SIG_IGN);
	/* A reader of gasflame's output waits until all writers have closed it. */
	if (fd > 0)
		syscall(SYS_close_range, 0U, fd - 1U, 0U);
	syscall(SYS_close_range, fd + 1U, ~0U, 0U);
	while (read(fd, &byte, 1) > 0 || errno == EINTR)
		errno = 0;
	while (rmdir(c->path) && errno == EBUSY)
		usleep(GUARD_POLL_US);
	give_back(c);
	_exit(0);
}

int limitgroup_guard(struct limitgroup *c, struct err *err)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC))
		return err_errno(err, errno, "cannot make a pipe");
	c->guard_pid = fork();
	if (!c->guard_pid) {
		close(ends[1]);
		guard(c, ends[0]);
	}
	close(ends[0]);
	if (c->guard_pid < 0) {
		close(ends[1]);
		return err_errno(err, errno, "cannot start another process");
	}
	c->guard = ends[1];
	return 0;
}

size_t limitgroup_processes(const struct limitgroup *c)
{
	_cleanup_free_ char *text = cgroupfile_read(c->path, "cgroup.procs");
	size_t n = 0;

	for (char *at = text; at && (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

void limitgroup_done(struct limitgroup *c)
{
	bool gone = c->path && access(c->path, F_OK);

	fd_close(&c->guard);
	/* Otherwise it has still to wait, and we have not. */
	if (c->guard_pid > 0 && gone)
		waitpid(c->guard_pid, NULL, 0);
	free(c->path);
	*c = (struct limitgroup){ .guard = -1 };
}

/* --- reading --- */

int limitgroup_read(const struct limitgroup *c, struct limitgroup_memory *ret)
{
	struct cgroupmemory g;
	int r = cgroupmemory_read_folder("", c->path, c->v2 ? 2 : 1, &g);

	*ret = (struct limitgroup_memory){ .limit = LIMITGROUP_UNLIMITED, .swap_limit = LIMITGROUP_UNLIMITED };
	if (r)
		return r;
	*ret = (struct limitgroup_memory){ .limit = g.limit_bytes, .swap_limit = g.swap_limit_bytes, .usage = g.usage_bytes,
					   .peak = g.peak_bytes, .anon = g.anon_bytes, .file = g.file_bytes,
					   .kernel = g.kernel_bytes, .swap = g.swap_bytes, .hits = g.limit_hits,
					   .oom_kills = g.oom_kills };
	/* Version 1 limits memory and swap together. Where swapping is not allowed, that limit is the one that is hit. */
	if (!c->v2) {
		bool both = ret->swap_limit != LIMITGROUP_UNLIMITED && ret->swap_limit >= ret->limit;

		ret->swap_limit = both ? ret->swap_limit - ret->limit : LIMITGROUP_UNLIMITED;
		ret->hits += cgroupfile_number(c->path, "memory.memsw.failcnt", 0);
	}
	cgroupmemory_done(&g);
	return 0;
}
