#include "collect/perf/sideband.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "base/mem.h"
#include "collect/process/processes.h"
#include "collect/perf/ring.h"
#include "target/proc.h"

enum { RING_PAGES = 64 };

struct sideband {
	struct ring *rings;
	int count, epoll;
	uint64_t lost;
};

void sideband_ask(struct perf_event_attr *attr)
{
	attr->mmap = 1;
	attr->mmap2 = 1;
	attr->comm = 1;
	attr->comm_exec = 1;
	attr->task = 1;
	sideband_ask_times(attr);
}

void sideband_ask_times(struct perf_event_attr *attr)
{
	attr->sample_id_all = 1;
	attr->sample_type |= PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

struct task_record {
	struct perf_event_header h;
	uint32_t pid, parent_pid, tid, parent_tid;
	uint64_t time;
};

struct comm_record {
	struct perf_event_header h;
	uint32_t pid, tid;
	char name[];
};

struct mmap2_record {
	struct perf_event_header h;
	uint32_t pid, tid;
	uint64_t address, size, offset;
	uint32_t device_major, device_minor;
	uint64_t inode, generation;
	uint32_t protection, flags;
	char path[];
};

struct lost_record {
	struct perf_event_header h;
	uint64_t id, lost;
};

/* A mapping as it was made. False: the record does not say enough. */
static bool apply_mapping(struct processes *ps, const struct mmap2_record *r)
{
	size_t room = r->h.size > sizeof(*r) ? r->h.size - sizeof(*r) : 0;
	struct proc_mapping m = { .start = r->address, .end = r->address + r->size, .offset = r->offset, .inode = r->inode,
				  .device_major = r->device_major, .device_minor = r->device_minor, .executable = true };
	_cleanup_free_ char *path = NULL;

	if (r->h.type != PERF_RECORD_MMAP2 || !room || r->size > UINT64_MAX - r->address ||
	    r->h.misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return false;
	path = mem_strndup(r->path, strnlen(r->path, room));
	m.path = path;
	if (!strcmp(path, "//anon"))
		path[0] = 0;
	processes_map(ps, r->pid, &m);
	return true;
}

bool sideband_record(struct processes *ps, const struct perf_event_header *h, uint64_t *lost)
{
	const struct task_record *task = (const void *)h;
	const struct comm_record *comm = (const void *)h;
	const struct mmap2_record *map = (const void *)h;

	switch (h->type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		if (!processes_knows(ps, map->pid))
			return false;
		if (!apply_mapping(ps, map))
			processes_dirty(ps, map->pid);
		return true;
	case PERF_RECORD_COMM: {
		char name[16];

		if (!processes_knows(ps, comm->pid))
			return false;
		/* Each CPU's records come by themselves: this may be heard before the fork that gave the pid to a stranger. */
		if (!processes_still(ps, comm->pid))
			return true;
		snprintf(name, sizeof(name), "%.15s", comm->name);
		processes_rename(ps, comm->pid, comm->tid, name);
		if (h->misc & PERF_RECORD_MISC_COMM_EXEC)
			processes_exec(ps, comm->pid, 0);
		return true;
	}
	case PERF_RECORD_FORK:
		if (!processes_knows(ps, task->parent_pid)) {
			if (task->pid != task->parent_pid)
				processes_reused(ps, task->pid, task->time);
			return false;
		}
		if (task->pid != task->parent_pid)
			processes_fork(ps, task->parent_pid, task->pid, task->time);
		processes_thread_start(ps, task->pid, task->tid, task->parent_pid, task->parent_tid, task->time);
		return task->pid != task->parent_pid;
	case PERF_RECORD_EXIT:
		if (processes_knows(ps, task->pid))
			processes_thread_exit(ps, task->pid, task->tid, task->time);
		return false;
	case PERF_RECORD_LOST:
		*lost += ((const struct lost_record *)h)->lost;
		processes_dirty_all(ps);
		return true;
	default:
		return false;
	}
}

static int open_cpu(struct sideband *sb, int cpu, struct err *err)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_DUMMY,
					.watermark = 1, .wakeup_watermark = 1 };
	struct epoll_event ev = { .events = EPOLLIN };
	int fd, r;

	sideband_ask(&attr);
	fd = ring_perf_open(&attr, -1, cpu, -1, 0);
	if (fd == -ENODEV) /* this CPU is offline */
		return 0;
	if (fd < 0)
		return err_errno(err, -fd, "cannot follow what processes map (perf_event_open on CPU %d)", cpu);
	r = ring_init(&sb->rings[sb->count], fd, RING_PAGES);
	if (r < 0)
		return err_errno(err, -r, "cannot map a perf ring");
	sb->count++;
	if (epoll_ctl(sb->epoll, EPOLL_CTL_ADD, fd, &ev))
		return err_errno(err, errno, "epoll_ctl");
	return 0;
}

int sideband_open(struct sideband **ret, struct err *err)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), r;
	struct sideband *sb = mem_alloc(sizeof(*sb));

	sb->rings = mem_alloc(cpus * sizeof(*sb->rings));
	sb->epoll = epoll_create1(EPOLL_CLOEXEC);
	for (int cpu = 0; cpu < cpus; cpu++) {
		r = open_cpu(sb, cpu, err);
		if (r < 0) {
			sideband_close(sb);
			return r;
		}
	}
	*ret = sb;
	return 0;
}

void sideband_close(struct sideband *sb)
{
	if (!sb)
		return;
	for (int i = 0; i < sb->count; i++)
		ring_done(&sb->rings[i]);
	free(sb->rings);
	fd_close(&sb->epoll);
	free(sb);
}

int sideband_epoll(const struct sideband *sb)
{
	return sb->epoll;
}

struct drain {
	struct processes *ps;
	uint64_t *lost;
	uint32_t interesting;
};

static void got(void *context, const struct perf_event_header *h)
{
	struct drain *d = context;

	d->interesting += sideband_record(d->ps, h, d->lost);
}

uint32_t sideband_drain(struct sideband *sb, struct processes *ps)
{
	struct drain d = { .ps = ps, .lost = &sb->lost };

	ring_drain(sb->rings, sb->count, got, &d);
	return d.interesting;
}
