/*
 * jitfile.c - /tmp is everybody's: a map counts only when the target's own user wrote it.
 */
#include "symbol/jitfile.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "base/text/str.h"
#include "base/vec.h"
#include "elf/worker/worker.h"
#include "profile/profile.h"
#include "symbol/stillrunning.h"
#include "target/open.h"
#include "target/proc.h"

enum { MAX_DUMPS = 16 }; /* of one process; a run time has one */

struct owner {
	const struct profile *profile;
	pid_t pid;              /* 0 = it has ended */
	struct proc_status status; /* where pid is set */
};

/* The wanted addresses, and those that are still open. */
struct question {
	struct owner owner;
	struct worker *worker;
	symbols_got_fn *got;
	void *context;
	VEC(uint64_t) addresses; /* that have no name yet */
	VEC(size_t) index;       /* of each, as the caller counts */
	bool *named;             /* by the same */
	bool any;                /* there was a file that could be read */
	char *why;
	size_t why_size;
};

/* The file must belong to the target's user; if the target has ended and its user is unknown, to ours. */
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

static void got_name(void *context, size_t i, const struct symbols_call *calls, size_t count)
{
	struct question *q = context;

	if (!count)
		return;
	q->named[q->index.v[i]] = true;
	q->got(q->context, q->index.v[i], calls, count);
}

/* Drops the addresses that have a name now. */
static void drop_named(struct question *q)
{
	size_t n = 0;

	for (size_t i = 0; i < q->addresses.n; i++)
		if (!q->named[q->index.v[i]]) {
			q->addresses.v[n] = q->addresses.v[i];
			q->index.v[n++] = q->index.v[i];
		}
	q->addresses.n = q->index.n = n;
}

static void ask_one(struct question *q, const char *path, bool dump)
{
	const struct owner *o = &q->owner;
	_cleanup_fd_ int fd = -1;
	struct err err = { 0 };
	int r = o->pid ? target_open_path(o->pid, path, &fd, NULL) : target_open_host(path, &fd, NULL);

	if (r < 0 || !q->addresses.n)
		return;
	if (!may_read(o, fd)) {
		snprintf(q->why, q->why_size, "%s is not used: it does not belong to the user of the process",
			 path);
		return;
	}
	r = worker_jit(q->worker, fd, dump, q->addresses.v, q->addresses.n, got_name, q, &err);
	if (r < 0)
		snprintf(q->why, q->why_size, "%s is not used: %s", path, err.text);
	else
		q->any = true;
	drop_named(q);
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
static void ask_dumps(struct question *q, uint32_t process)
{
	const struct profile *p = q->owner.profile;
	struct proc_maps maps = { 0 };
	unsigned asked = 0;
	const char *last = "";

	if (q->owner.pid && !proc_maps_read(q->owner.pid, true, &maps)) {
		for (size_t i = 0; i < maps.list.n && asked < MAX_DUMPS; i++)
			if (is_dump(maps.list.v[i].path) && strcmp(maps.list.v[i].path, last)) {
				last = maps.list.v[i].path;
				ask_one(q, last, true);
				asked++;
			}
		proc_maps_done(&maps);
		return;
	}
	for (size_t i = 0; i < p->mappings.n && asked < MAX_DUMPS; i++) {
		const char *path;

		if (p->mappings.v[i].process != process || p->mappings.v[i].module >= p->modules.n)
			continue;
		path = profile_str(p, p->modules.v[p->mappings.v[i].module].path);
		if (is_dump(path) && strcmp(path, last)) {
			last = path;
			ask_one(q, path, true);
			asked++;
		}
	}
}

/* Dumps have times, and take precedence; the map is asked for the rest. */
static void ask_files(struct question *q, uint32_t process)
{
	struct owner *o = &q->owner;
	char path[64];
	pid_t inner;

	if (o->pid && proc_status(o->pid, &o->status) < 0)
		o->pid = 0;
	inner = o->pid && o->status.inner_pid ? o->status.inner_pid : (pid_t)o->profile->processes.v[process].pid;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", inner);
	ask_dumps(q, process);
	ask_one(q, path, false);
	if (!q->any && !q->why[0])
		snprintf(q->why, q->why_size, "no names for code that process %d made at run time: have it "
			 "write %s (node: --perf-basic-prof)", inner, path);
}

void jitfile_resolve(const struct profile *p, uint32_t process, struct worker *w, const uint64_t *addresses, size_t n,
		     symbols_got_fn *got, void *context, char *why, size_t why_size)
{
	_cleanup_free_ bool *named = mem_alloc(n + 1);
	struct question q = { .owner = { .profile = p, .pid = stillrunning_pid(p, process) }, .worker = w, .got = got,
			      .context = context, .named = named, .why = why, .why_size = why_size };

	why[0] = 0;
	if (process >= p->processes.n || !stillrunning_kernel(p)) {
		snprintf(why, why_size, "no names for code that was made at run time: it was recorded "
			 "elsewhere, or before the last boot");
		return;
	}
	for (size_t i = 0; i < n; i++) {
		vec_push(&q.addresses, addresses[i]);
		vec_push(&q.index, i);
	}
	ask_files(&q, process);
	vec_done(&q.addresses);
	vec_done(&q.index);
}
