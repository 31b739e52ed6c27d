/*
 * process.c - what can be seen of one process: for `doctor TARGET`.
 *
 * Every mapped file is opened as the recorder would open it, and read by the
 * same unprivileged child: what fails here would fail there.
 */
#include "cmd/doctor/doctor.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/text/str.h"
#include "elf/worker/worker.h"
#include "symbol/jit/jithint.h"
#include "target/cgroup/cgrouppath.h"
#include "target/host.h"
#include "target/open.h"
#include "target/proc.h"

/* A mapped file. */
struct module {
	char *path;
	uint64_t inode, file_bytes, build_ns;
	uint32_t device_major, device_minor;
	bool program, inspected;
	char *problem; /* why it could not be read */
	struct symbols_info info;
	struct buildfacts facts; /* of the program, and of a jemalloc */
	uint32_t rows, unsupported;
	uint64_t table_bytes;
};

struct modules {
	VEC(struct module) list;
	size_t anonymous; /* executable mappings without a file: JIT code */
};

static struct module *find_module(struct modules *all, const struct proc_mapping *m)
{
	for (size_t i = 0; i < all->list.n; i++) {
		struct module *x = &all->list.v[i];

		if (x->inode == m->inode && x->device_major == m->device_major &&
		    x->device_minor == m->device_minor)
			return x;
	}
	return NULL;
}

static void read_module(pid_t pid, const struct proc_mapping *m, struct worker *worker, struct module *x)
{
	struct unwind_table table = { 0 };
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	uint64_t start;
	struct stat st;

	if (target_open_mapping(pid, m, &fd, &err)) {
		x->problem = mem_strdup(err.text);
		return;
	}
	x->file_bytes = fstat(fd, &st) ? 0 : st.st_size;
	if (worker_inspect(worker, fd, &x->info, &err)) {
		x->problem = mem_strdup(err.text);
		return;
	}
	x->inspected = true;
	/* For people: a file that does not say it can be recorded all the same. */
	if (x->program || str_starts(x->info.allocator, "jemalloc"))
		worker_buildfacts(worker, fd, &x->facts, NULL);
	start = clock_mono_ns();
	if (worker_unwind(worker, fd, &table, &err)) {
		x->problem = mem_strdup(err.text);
		return;
	}
	x->build_ns = clock_mono_ns() - start;
	x->rows = table.row_count;
	x->unsupported = table.unsupported;
	x->table_bytes = (uint64_t)table.row_count * sizeof(*table.rows) +
			 (uint64_t)table.page_count * sizeof(*table.pages) +
			 (uint64_t)table.rule_count * sizeof(*table.rules);
	unwind_done(&table);
}

static bool is_program(pid_t pid, const struct module *x)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	return !stat(path, &st) && st.st_ino == x->inode;
}

static void read_modules(pid_t pid, const struct proc_maps *maps, struct worker *worker, struct modules *ret)
{
	for (size_t i = 0; i < maps->list.n; i++) {
		const struct proc_mapping *m = &maps->list.v[i];
		struct module x = { .path = NULL };

		if (!m->inode) {
			/* [vdso] and [vsyscall] are the kernel's; the rest is made at run time. */
			ret->anonymous +=
				!*m->path || str_starts(m->path, "[anon") || str_starts(m->path, "[heap");
			continue;
		}
		if (find_module(ret, m))
			continue;
		x.path = mem_strdup(m->path);
		x.inode = m->inode;
		x.device_major = m->device_major;
		x.device_minor = m->device_minor;
		x.program = is_program(pid, &x);
		log_progress("reading %s", x.path);
		read_module(pid, m, worker, &x);
		vec_push(&ret->list, x);
	}
	log_progress_end();
}

static void modules_done(struct modules *all)
{
	vec_done_each(&all->list, e, free(e->path); free(e->problem));
}

/* --- the checks --- */

static const char *user_name(uid_t uid, char out[64])
{
	struct passwd *pw = getpwuid(uid);

	if (pw)
		snprintf(out, 64, "%s", pw->pw_name);
	else
		snprintf(out, 64, "user %u", uid);
	return out;
}

static bool same_namespace(pid_t pid, const char *kind)
{
	char path[64];
	struct stat ours, theirs;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (stat(path, &ours))
		return true;
	snprintf(path, sizeof(path), "/proc/%d/ns/%s", pid, kind);
	return stat(path, &theirs) || (ours.st_ino == theirs.st_ino && ours.st_dev == theirs.st_dev);
}

static void check_process(pid_t pid, const struct proc_stat *stat, const struct proc_status *status,
			  struct checks *c)
{
	_cleanup_free_ char *command = proc_command(pid);
	char rss[32], user[64];
	struct cgrouppath group;

	checks_add(c, "process", CHECK_OK, NULL, NULL, "%d %s: %.*s", pid, stat->name, 120,
		   command ? command : "");
	checks_add(c, "size", CHECK_OK, NULL, NULL, "%u thread%s, RSS %s, user %s", stat->threads,
		   stat->threads == 1 ? "" : "s", str_bytes(rss, stat->rss_bytes),
		   user_name(status->uid, user));
	if (!cgrouppath_read(pid, &group) && group.container)
		checks_add(c, "container", CHECK_OK, NULL, NULL, "yes: %.12s%s%s, pid %d inside", group.container,
			   *group.engine ? " of " : "", group.engine, status->inner_pid);
	else if (!same_namespace(pid, "pid"))
		checks_add(c, "container", CHECK_OK, NULL, NULL, "yes: pid %d inside", status->inner_pid);
	else if (!same_namespace(pid, "mnt"))
		checks_add(c, "container", CHECK_OK, NULL, NULL, "its own mounts");
	if (group.unit)
		checks_add(c, "unit", CHECK_OK, NULL, NULL, "%s", group.unit);
	cgrouppath_done(&group);
}

static bool can_sample(pid_t pid)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.disabled = 1,
					.config = PERF_COUNT_SW_CPU_CLOCK,
					.exclude_kernel = 1,
					.exclude_hv = 1 };
	_cleanup_fd_ int fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd >= 0;
}

/* Checks whether the process may be recorded at all. */
static bool check_rights(pid_t pid, const struct proc_status *status, const struct host *h, int maps_error,
			 struct checks *c)
{
	const char *how = h->own_users ? host_remedy(h) : "run it with sudo, or as the user of the process";
	bool same_user = status->uid == geteuid() && status->euid == geteuid();
	bool sampled = can_sample(pid);

	if (maps_error)
		checks_add(c, "rights", CHECK_MISSING, how,
			   sampled ? "samples without names or stacks" : "nothing",
			   "its maps cannot be read: %s%s", strerror(-maps_error),
			   same_user ? " (it has more rights than you, or forbids to be dumped)" : "");
	else if (!sampled)
		checks_add(c, "rights", CHECK_MISSING, how, "symbols only: nothing can be recorded",
			   "%s user; perf events on it are refused (perf_event_paranoid is %d)",
			   same_user ? "same" : "another", h->paranoid);
	else
		checks_add(c, "rights", CHECK_OK, NULL, NULL, "%s user; maps, files and samples can be read",
			   same_user ? "same" : "another");
	return !maps_error && sampled;
}

static void check_program(const struct module *x, struct checks *c)
{
	const struct symbols_info *i = &x->info;
	char count[32], bytes[32];

	str_bytes(bytes, x->file_bytes);
	str_count(count, i->symbol_count);
	if (i->symtab)
		checks_add(c, "symbols", CHECK_OK, NULL, NULL, "%s functions in %s (%s)", count,
			   str_base_name(x->path), bytes);
	else if (i->minidebug)
		checks_add(c, "symbols", CHECK_OK, NULL, NULL, "stripped, but with .gnu_debugdata");
	else if (i->go)
		checks_add(c, "symbols", CHECK_OK, NULL, NULL, "stripped, but with %s functions in Go's own table", count);
	else if (*i->debuglink)
		checks_add(c, "symbols", CHECK_LIMITED,
			   "install its debug package, or name the file with --symbols",
			   "exported names only", "stripped; its debug file is called %s", i->debuglink);
	else
		checks_add(c, "symbols", CHECK_LIMITED,
			   "a build that is not stripped, or --symbols FILE with one of the same build-id",
			   "functions by their start; exported names", "stripped: %s exported functions", count);
	if (i->debug_line || i->debug_info)
		checks_add(c, "debug info", CHECK_OK, NULL, NULL, "lines%s",
			   i->debug_info ? " and inlined calls" : "");
	else if (i->go)
		checks_add(c, "debug info", CHECK_OK, NULL, NULL, "lines and inlined calls, in Go's own table");
	else
		checks_add(c, "debug info", CHECK_LIMITED, "a build with debug = 1 (Rust) or -g (C)",
			   "function names; no lines, no inlined calls", "none in %s", str_base_name(x->path));
}

static int by_size(const void *a, const void *b)
{
	const struct module *x = a, *y = b;

	return x->file_bytes < y->file_bytes   ? 1
	       : x->file_bytes > y->file_bytes ? -1
					       : strcmp(x->path, y->path);
}

static void check_tables(const struct modules *all, struct checks *c)
{
	enum { SHOWN = 5 };
	uint64_t rows = 0, bytes = 0, ns = 0, unsupported = 0;
	size_t bare = 0, unread = 0, read = 0;
	char count[32], size[32], time[32];
	_cleanup_(buf_done) struct buf without = { 0 }, failed = { 0 };

	for (size_t i = 0; i < all->list.n; i++) {
		const struct module *x = &all->list.v[i];

		rows += x->rows;
		bytes += x->table_bytes;
		ns += x->build_ns;
		unsupported += x->unsupported;
		if (x->problem) {
			if (unread++ < SHOWN)
				buf_printf(&failed, "%s%s (%s)", failed.n ? ", " : "", str_base_name(x->path),
					   x->problem);
		} else if (!x->rows) {
			if (bare++ < SHOWN)
				buf_printf(&without, "%s%s (%s)", without.n ? ", " : "", str_base_name(x->path),
					   str_bytes(size, x->file_bytes));
		} else {
			read++;
		}
	}
	checks_add(c, "unwind tables", read ? CHECK_OK : CHECK_MISSING,
		   read ? NULL : "see the files that cannot be read",
		   read ? NULL : "frame pointers, where the code keeps them",
		   "%s rows of %zu file%s, %s, built in %s", str_count(count, rows), read,
		   read == 1 ? "" : "s", str_bytes(size, bytes), str_duration(time, ns));
	if (unsupported)
		checks_add(c, "odd rows", CHECK_LIMITED, NULL, "all other stacks",
			   "%s rows have no rule: stacks end there",
			   str_count(count, unsupported));
	if (bare)
		checks_add(c, "without tables", CHECK_LIMITED, NULL,
			   "frame pointers, where the code keeps them", "%s%s", without.data,
			   bare > SHOWN ? ", ..." : "");
	if (unread)
		checks_add(c, "unreadable", CHECK_LIMITED, NULL, "the rest", "%zu file%s: %s%s", unread,
			   unread == 1 ? "" : "s", failed.data, unread > SHOWN ? ", ..." : "");
}

static void check_allocator(const struct modules *all, struct checks *c, struct doctor_build *ret)
{
	const char *libc = NULL, *found = NULL, *where = NULL;

	for (size_t i = 0; i < all->list.n; i++) {
		const struct module *x = &all->list.v[i];
		const char *name = str_base_name(x->path);

		if (*x->info.allocator && (!found || x->program)) {
			found = x->info.allocator;
			where = name;
			ret->jemalloc = x->facts;
		}
		if (str_starts(name, "libc.so") || str_starts(name, "libc-2"))
			libc = "glibc";
		else if (str_starts(name, "ld-musl") || str_starts(name, "libc.musl"))
			libc = "musl";
	}
	snprintf(ret->allocator, sizeof(ret->allocator), "%s", found ? found : libc ? libc : "");
	if (found)
		checks_add(c, "allocator", CHECK_OK, NULL, NULL, "%s, in %s", found, where);
	else if (str_starts(ret->facts.compiler, "go"))
		checks_add(c, "allocator", CHECK_OK, NULL, NULL, "Go's own: its heap is that of the garbage collector");
	else if (libc)
		checks_add(c, "allocator", CHECK_OK, NULL, NULL, "%s's malloc", libc);
	else
		checks_add(c, "allocator", CHECK_LIMITED, NULL, "CPU time: all of it",
			   "not recognized (static, stripped?)");
}

static const struct jithint *run_time(const struct modules *all)
{
	const struct jithint *h = NULL;

	for (size_t i = 0; !h && i < all->list.n; i++)
		h = jithint_of_file(all->list.v[i].path);
	return h;
}

static void check_jit(pid_t pid, const struct proc_status *status, const struct modules *all,
		      struct checks *c)
{
	const struct jithint *h = run_time(all);
	_cleanup_fd_ int fd = -1;
	struct stat st;
	char path[64];

	if (!all->anonymous)
		return;
	/* The runtime writes the map under the pid that it knows itself by. */
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", status->inner_pid);
	if (target_open_path(pid, path, &fd, NULL) || fstat(fd, &st))
		checks_add(c, "JIT code", CHECK_LIMITED,
			   h && !h->names ? NULL :
			   h		  ? h->names :
					    "let the runtime write it (node --perf-basic-prof, jcmd PID Compiler.perfmap, "
					    "DOTNET_PerfMapEnabled=1)",
			   "frames without names, by frame pointers",
			   "%zu executable mappings without a file, and no %s", all->anonymous, path);
	else if (st.st_uid && st.st_uid != status->uid && st.st_uid != status->euid)
		checks_add(c, "JIT code", CHECK_LIMITED, NULL, "frames without names, by frame pointers",
			   "%s is not used: it does not belong to the user of the process", path);
	else
		checks_add(c, "JIT code", CHECK_OK, NULL, NULL, "%zu mappings, names in %s", all->anonymous,
			   path);
}

static void note_program(const struct module *x, struct doctor_build *ret)
{
	snprintf(ret->program, sizeof(ret->program), "%s", str_base_name(x->path));
	ret->symbols = x->info.symtab || x->info.minidebug || x->info.go;
	ret->lines = x->info.debug_line || x->info.debug_info || x->info.go;
	ret->facts = x->facts;
}

bool doctor_check_process(pid_t pid, const struct host *host, struct worker *worker, struct checks *ret,
			  struct doctor_build *ret_build)
{
	struct modules all = { 0 };
	struct proc_status status;
	struct proc_stat stat;
	struct proc_maps maps;
	bool recordable;
	int r;

	if (proc_stat(pid, &stat) || proc_status(pid, &status)) {
		checks_add(ret, "process", CHECK_MISSING, NULL, NULL, "%d is gone", pid);
		return false;
	}
	check_process(pid, &stat, &status, ret);
	r = proc_maps_read(pid, true, &maps);
	recordable = check_rights(pid, &status, host, r, ret);
	if (r)
		return false;
	read_modules(pid, &maps, worker, &all);
	vec_sort(&all.list, by_size);
	for (size_t i = 0; i < all.list.n; i++)
		if (all.list.v[i].program && all.list.v[i].inspected) {
			note_program(&all.list.v[i], ret_build);
			check_program(&all.list.v[i], ret);
		}
	check_tables(&all, ret);
	check_allocator(&all, ret, ret_build);
	doctor_check_client(pid, ret_build, ret);
	check_jit(pid, &status, &all, ret);
	modules_done(&all);
	proc_maps_done(&maps);
	return recordable;
}
