/*
 * jitfile.c - /tmp is everybody's: a map counts only when the target's own user wrote it.
 */
#include "symbol/jitfile.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "profile/profile.h"
#include "symbol/jit.h"
#include "symbol/live.h"
#include "target/open.h"
#include "target/proc.h"

static const size_t limit_bytes = 256 << 20;

struct owner {
	const struct profile *profile;
	pid_t pid;              /* 0 = it has ended */
	struct proc_status status; /* where pid is set */
};

/* Of the target's user; where it has ended and nobody can say who that was, of ours. */
static bool may_read(const struct owner *o, int fd)
{
	const char *sudo = getenv("SUDO_UID");
	struct stat st;
	uint64_t uid;

	if (fstat(fd, &st))
		return false;
	if (o->pid)
		return st.st_uid == o->status.uid || st.st_uid == o->status.euid;
	if (st.st_mtim.tv_sec * 1000000000ULL + 1000000000ULL < o->profile->start_wall_ns)
		return false; /* of an older process with that number */
	return st.st_uid == geteuid() ||
	       (sudo && !str_parse_uint(sudo, 0, UINT32_MAX - 1, &uid) && st.st_uid == uid);
}

static bool read_one(const struct owner *o, struct jit *j, const char *path, bool dump, char *why,
		     size_t why_size)
{
	_cleanup_free_ char *data = NULL;
	_cleanup_fd_ int fd = -1;
	size_t n;
	int r = o->pid ? target_open_path(o->pid, path, &fd, NULL) : target_open_host(path, &fd, NULL);

	if (r < 0)
		return false;
	if (!may_read(o, fd)) {
		snprintf(why, why_size, "%s is not used: it does not belong to the user of the process",
			 path);
		return false;
	}
	r = fd_read_file(fd, limit_bytes, &data, &n);
	if (r < 0) {
		snprintf(why, why_size, "%s is not used: %s", path,
			 r == -EFBIG ? "it is larger than 256 MB" : strerror(-r));
		return false;
	}
	if (!dump) {
		jit_parse_map(j, data, n);
	} else {
		struct err err = { 0 };

		if (jit_parse_dump(j, data, n, &err) < 0) {
			snprintf(why, why_size, "%s is not used: %s", path, err.text);
			return false;
		}
	}
	return true;
}

/* .../jit-123.dump */
static bool is_dump(const char *path)
{
	const char *base = strrchr(path, '/');

	if (!base || !str_starts(base + 1, "jit-"))
		return false;
	for (base += 5; isdigit((unsigned char)*base); base++)
		;
	return !strcmp(base, ".dump");
}

/* A run time maps its dump so that profilers find it. */
static void read_dumps(const struct owner *o, struct jit *j, uint32_t process, char *why, size_t why_size)
{
	const struct profile *p = o->profile;
	struct proc_maps maps = { 0 };
	const char *last = "";

	if (o->pid && !proc_maps_read(o->pid, true, &maps)) {
		for (size_t i = 0; i < maps.list.n; i++)
			if (is_dump(maps.list.v[i].path) && strcmp(maps.list.v[i].path, last)) {
				last = maps.list.v[i].path;
				read_one(o, j, last, true, why, why_size);
			}
		proc_maps_done(&maps);
		return;
	}
	for (size_t i = 0; i < p->mappings.n; i++) {
		const char *path;

		if (p->mappings.v[i].process != process || p->mappings.v[i].module >= p->modules.n)
			continue;
		path = profile_str(p, p->modules.v[p->mappings.v[i].module].path);
		if (is_dump(path))
			read_one(o, j, path, true, why, why_size);
	}
}

struct jit *jitfile_load(const struct profile *p, uint32_t process, char *why, size_t why_size)
{
	struct owner o = { .profile = p, .pid = live_pid(p, process) };
	struct jit *j = jit_new();
	char path[64];
	pid_t inner;

	why[0] = 0;
	if (process < p->processes.n && live_kernel(p)) {
		if (o.pid && proc_status(o.pid, &o.status) < 0)
			o.pid = 0;
		inner = o.pid && o.status.inner_pid ? o.status.inner_pid : (pid_t)p->processes.v[process].pid;
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", inner);
		read_one(&o, j, path, false, why, why_size);
		read_dumps(&o, j, process, why, why_size);
		if (!jit_count(j) && !why[0])
			snprintf(why, why_size, "no names for code that process %d made at run time: have it "
				 "write %s (node: --perf-basic-prof)", inner, path);
	} else {
		snprintf(why, why_size, "no names for code that was made at run time: it was recorded "
			 "elsewhere, or before the last boot");
	}
	if (jit_count(j))
		return j;
	jit_free(j);
	return NULL;
}
