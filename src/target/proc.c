#include "target/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/map.h"
#include "base/text/str.h"

/* A line of maps is its path and less than 100 bytes; the kernel gives at most PATH_MAX of path, and
 * four bytes for an escaped one. */
enum { PROC_LINE_MAX = 4 * PATH_MAX + 256, PROC_COMMAND_MAX = 1 << 20 };

/* A process that is gone shows as ENOENT (open), ESRCH (read) or ENODEV, after the moment. */
static int gone(int code)
{
	return code == ENOENT || code == ENODEV ? -ESRCH : -code;
}

/* --- maps --- */

static bool parse_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && isxdigit((unsigned char)*s); s++) {
		if (v >> 60)
			return false;
		v = v << 4 | (uint64_t)(*s <= '9' ? *s - '0' : (*s | 32) - 'a' + 10);
	}
	if (s == *p)
		return false;
	*p = s;
	*ret = v;
	return true;
}

static bool parse_char(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	++*p;
	return true;
}

static bool parse_decimal(const char **p, const char *end, uint64_t *ret)
{
	const char *s = *p;
	uint64_t v = 0;

	for (; s < end && isdigit((unsigned char)*s); s++)
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v))
			return false;
	if (s == *p)
		return false;
	*p = s;
	*ret = v;
	return true;
}

/* The kernel escapes one byte only, the newline, as \012. */
static char *unescape_path(const char *s, size_t n)
{
	char *out = mem_alloc(n + 1);
	size_t o = 0;

	for (size_t i = 0; i < n && s[i]; i++) {
		if (n - i >= 4 && !memcmp(s + i, "\\012", 4)) {
			out[o++] = '\n';
			i += 3;
		} else {
			out[o++] = s[i];
		}
	}
	return out;
}

/*
 *	7f1c2a000000-7f1c2a028000 r-xp 00028000 fd:01 1234       /usr/lib/libc.so.6
 */
static bool parse_mapping(const char *line, const char *end, bool executable_only, struct proc_mapping *m,
			  bool *ret_wanted)
{
	const char *p = line, *flags;
	uint64_t major, minor;

	*m = (struct proc_mapping){ 0 };
	if (!parse_hex(&p, end, &m->start) || !parse_char(&p, end, '-') || !parse_hex(&p, end, &m->end) ||
	    !parse_char(&p, end, ' ') || m->start >= m->end)
		return false;
	flags = p;
	if (end - p < 5 || p[4] != ' ')
		return false;
	p += 5;
	if (!parse_hex(&p, end, &m->offset) || !parse_char(&p, end, ' ') || !parse_hex(&p, end, &major) ||
	    !parse_char(&p, end, ':') || !parse_hex(&p, end, &minor) || !parse_char(&p, end, ' ') ||
	    !parse_decimal(&p, end, &m->inode))
		return false;
	if (major > UINT32_MAX || minor > UINT32_MAX || (p < end && *p != ' '))
		return false;
	m->writable = flags[1] == 'w';
	m->executable = flags[2] == 'x';
	m->device_major = major;
	m->device_minor = minor;
	*ret_wanted = m->executable || !executable_only;
	if (!*ret_wanted)
		return true;
	/* The path begins with "/", "[" or a word; only the padding before it is not its own. */
	while (p < end && *p == ' ')
		p++;
	m->path = unescape_path(p, end - p);
	return true;
}

static size_t parse_lines(const char *text, size_t n, bool executable_only, struct proc_maps *maps)
{
	const char *p = text, *end = text + n;
	size_t bad = 0;

	while (p < end) {
		const char *newline = memchr(p, '\n', end - p);
		const char *stop = newline ? newline : end;
		struct proc_mapping m;
		bool wanted;

		if (!parse_mapping(p, stop, executable_only, &m, &wanted))
			bad += stop > p;
		else if (wanted)
			vec_push(&maps->list, m);
		p = stop + 1;
	}
	return bad;
}

size_t proc_maps_parse(const char *text, size_t n, struct proc_maps *ret)
{
	*ret = (struct proc_maps){ 0 };
	return parse_lines(text, n, false, ret);
}

/* In pieces: a process may have a million mappings, of which few are code. */
int proc_read_lines(pid_t pid, const char *name, proc_lines_fn *lines, void *context)
{
	enum { CAPACITY = 64 * 1024 };
	_Static_assert(CAPACITY > 2 * PROC_LINE_MAX, "a line must fit");
	_cleanup_free_ char *data = mem_alloc(CAPACITY), *path = mem_printf("/proc/%d/%s", pid, name);
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t n = 0;

	if (fd < 0)
		return gone(errno);
	for (;;) {
		ssize_t r = read(fd, data + n, CAPACITY - n);
		const char *last;
		size_t whole;

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return gone(errno);
		n += r;
		last = n ? memrchr(data, '\n', n) : NULL;
		whole = !r || (!last && n == CAPACITY) ? n : last ? (size_t)(last + 1 - data) : 0;
		lines(context, data, whole);
		memmove(data, data + whole, n - whole);
		n -= whole;
		if (!r)
			return 0;
	}
}

static void add_all(void *context, const char *text, size_t n)
{
	parse_lines(text, n, false, context);
}

static void add_executable(void *context, const char *text, size_t n)
{
	parse_lines(text, n, true, context);
}

int proc_maps_read(pid_t pid, bool executable_only, struct proc_maps *ret)
{
	int r;

	*ret = (struct proc_maps){ 0 };
	r = proc_read_lines(pid, "maps", executable_only ? add_executable : add_all, ret);
	if (r)
		proc_maps_done(ret);
	return r;
}

void proc_maps_done(struct proc_maps *m)
{
	vec_done_each(&m->list, e, free(e->path));
}

/* --- lists of processes and threads --- */

static int list_numbers(const char *path, struct proc_ids *ret)
{
	struct dirent *e;
	DIR *dir;

	*ret = (struct proc_ids){ 0 };
	dir = opendir(path);
	if (!dir)
		return gone(errno);
	while ((errno = 0, e = readdir(dir))) {
		uint64_t id;

		if (!str_parse_uint(e->d_name, 1, INT_MAX, &id))
			vec_push(&ret->list, (pid_t)id);
	}
	if (errno) {
		int code = errno;

		closedir(dir);
		vec_done(&ret->list);
		return gone(code);
	}
	closedir(dir);
	return 0;
}

int proc_list(struct proc_ids *ret)
{
	return list_numbers("/proc", ret);
}

int proc_threads(pid_t pid, struct proc_ids *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	return list_numbers(path, ret);
}

/* A single pass over all processes: /proc/PID/task/TID/children is optional in kernels, and would be a
 * file for each thread. */
int proc_children(pid_t pid, struct proc_ids *ret)
{
	struct proc_ids all;
	pid_t *parents;
	_cleanup_(map_done) struct map family = { 0 };
	int r;

	*ret = (struct proc_ids){ 0 };
	r = proc_list(&all);
	if (r)
		return r;
	parents = mem_resize(NULL, all.list.n + 1, sizeof(*parents));
	for (size_t i = 0; i < all.list.n; i++) {
		struct proc_stat s;

		parents[i] = proc_stat(all.list.v[i], &s) ? 0 : s.parent;
	}
	map_put(&family, pid, 1);
	/* A child's pid may be below its parent's, once pids have wrapped: until nothing is added. */
	for (bool grew = true; grew;) {
		grew = false;
		for (size_t i = 0; i < all.list.n; i++) {
			if (!map_get(&family, parents[i]) || map_get(&family, all.list.v[i]))
				continue;
			map_put(&family, all.list.v[i], 1);
			vec_push(&ret->list, all.list.v[i]);
			grew = true;
		}
	}
	free(parents);
	vec_done(&all.list);
	return 0;
}

/* --- one process --- */

static int read_small(const char *path, char *out, size_t size)
{
	_cleanup_fd_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return gone(errno);
	n = fd_read_all(fd, out, size - 1);
	if (n < 0)
		return gone(-n);
	out[n] = 0;
	return n ? 0 : -ESRCH;
}

/* The name is in parentheses and may hold any byte, parentheses and newlines too: it ends at the last one. */
static int read_stat(const char *path, struct proc_stat *ret)
{
	long hz = sysconf(_SC_CLK_TCK), page = sysconf(_SC_PAGESIZE);
	unsigned long long minor, major, user, system, start;
	char text[2048], *open, *close;
	long threads, rss;
	size_t n;
	int r;

	*ret = (struct proc_stat){ 0 };
	r = read_small(path, text, sizeof(text));
	if (r)
		return r;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (!open || !close || close < open)
		return -EINVAL;
	n = MIN((size_t)(close - open - 1), sizeof(ret->name) - 1);
	memcpy(ret->name, open + 1, n);
	ret->name[n] = 0;
	/* Fields 3 to 24 of proc(5). */
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %ld %*d %llu %*u "
		   "%ld",
		   &ret->state, &ret->parent, &minor, &major, &user, &system, &threads, &start, &rss) != 9)
		return -EINVAL;
	ret->cpu_ns = (uint64_t)(user + system) * (1000000000 / (hz > 0 ? hz : 100));
	ret->start_ticks = start;
	ret->minor_faults = minor;
	ret->major_faults = major;
	ret->threads = threads > 0 ? threads : 0;
	ret->rss_bytes = rss > 0 ? (uint64_t)rss * page : 0;
	return 0;
}

int proc_stat(pid_t pid, struct proc_stat *ret)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	return read_stat(path, ret);
}

uint64_t proc_started(pid_t pid)
{
	struct proc_stat st;

	return proc_stat(pid, &st) < 0 ? 0 : st.start_ticks;
}

int proc_thread_stat(pid_t pid, pid_t tid, struct proc_stat *ret)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	return read_stat(path, ret);
}

int proc_schedstat(pid_t pid, pid_t tid, uint64_t *ret_cpu_ns, uint64_t *ret_queue_ns)
{
	unsigned long long cpu, queue;
	char path[96], text[128];
	int r;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", pid, tid);
	r = read_small(path, text, sizeof(text));
	if (r)
		return r;
	if (sscanf(text, "%llu %llu", &cpu, &queue) != 2)
		return -EINVAL;
	*ret_cpu_ns = cpu;
	*ret_queue_ns = queue;
	return 0;
}

/* The value of "Key:" at the start of a line, NULL if there is none. */
static const char *status_field(const char *text, const char *key)
{
	size_t n = strlen(key);

	for (const char *p = text; p; p = strchr(p, '\n')) {
		p += *p == '\n';
		if (!strncmp(p, key, n) && p[n] == ':')
			return p + n + 1;
	}
	return NULL;
}

static int read_status(pid_t pid, char **ret)
{
	_cleanup_free_ char *path = mem_printf("/proc/%d/status", pid);
	int r = fd_read_path(path, 1 << 20, ret, NULL);

	return r ? gone(-r) : 0;
}

int proc_status(pid_t pid, struct proc_status *ret)
{
	_cleanup_free_ char *text = NULL;
	const char *f;
	int r = read_status(pid, &text);

	*ret = (struct proc_status){ 0 };
	if (r)
		return r;
	f = status_field(text, "Uid");
	if (!f || sscanf(f, "%u %u", &ret->uid, &ret->euid) != 2)
		return -ESRCH;
	f = status_field(text, "Tgid");
	ret->tgid = f ? atoi(f) : pid;
	ret->inner_pid = ret->tgid;
	f = status_field(text, "NSpid");
	if (f) { /* one number for each namespace, the innermost last */
		int used, id;

		while (sscanf(f, "%*[ \t]%d%n", &id, &used) == 1) {
			ret->inner_pid = id;
			f += used;
		}
	}
	f = status_field(text, "CapEff");
	ret->cap_effective = f ? strtoull(f, NULL, 16) : 0;
	f = status_field(text, "VmLck");
	ret->vm_locked_bytes = f ? strtoull(f, NULL, 10) * 1024 : 0;
	f = status_field(text, "Seccomp");
	ret->seccomp = f ? atoi(f) : 0;
	return 0;
}

static uint64_t status_kilobytes(const char *text, const char *name)
{
	const char *f = status_field(text, name);

	return f ? strtoull(f, NULL, 10) * 1024 : 0;
}

int proc_memory(pid_t pid, struct proc_memory *ret)
{
	_cleanup_free_ char *text = NULL;
	int r = read_status(pid, &text);

	*ret = (struct proc_memory){ 0 };
	if (r)
		return r;
	ret->anon_bytes = status_kilobytes(text, "RssAnon");
	ret->file_bytes = status_kilobytes(text, "RssFile");
	ret->shared_bytes = status_kilobytes(text, "RssShmem");
	ret->swap_bytes = status_kilobytes(text, "VmSwap");
	ret->page_table_bytes = status_kilobytes(text, "VmPTE");
	ret->peak_bytes = status_kilobytes(text, "VmHWM");
	ret->virtual_bytes = status_kilobytes(text, "VmSize");
	ret->huge_bytes = status_kilobytes(text, "HugetlbPages");
	ret->threads = status_kilobytes(text, "Threads") / 1024;
	ret->rss_bytes = ret->anon_bytes + ret->file_bytes + ret->shared_bytes;
	return 0;
}

char *proc_command(pid_t pid)
{
	_cleanup_free_ char *more = NULL;
	_cleanup_fd_ int fd = -1;
	char path[64], few[4096], *data = few;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = fd_read_all(fd, few, sizeof(few));
	if (n == sizeof(few)) {
		ssize_t rest;

		/* A process chooses its own command line; a person has no use for more than a megabyte of
		 * it. */
		data = more = mem_alloc(PROC_COMMAND_MAX + 1);
		memcpy(data, few, n);
		rest = fd_read_all(fd, data + n, PROC_COMMAND_MAX - n);
		n = rest < 0 ? rest : n + rest;
	}
	if (n < 0)
		return NULL;
	while (n && !data[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		if (!data[i])
			data[i] = ' ';
	return mem_strndup(data, n);
}

char *proc_exe(pid_t pid)
{
	static const char suffix[] = " (deleted)";
	char path[64], target[PATH_MAX + 32];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return NULL;
	target[n] = 0;
	if (str_ends(target, suffix))
		target[n - (sizeof(suffix) - 1)] = 0;
	return mem_strdup(target);
}
