/* attach.c - the perf events of the fallback: which, on which threads, and into which ring. */
#include <errno.h>
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "base/err.h"
#include "base/file/fd.h"
#include "collect/collector.h"
#include "collect/perf/fallbackstate.h"
#include "collect/perf/ring.h"
#include "collect/perf/sideband.h"
#include "target/proc.h"
#include "target/trace/tracefs.h"

enum {
	WAKE_UP_BYTES = 32768, /* of switches: then they are read */
	/* Copies of stacks at switches, a second: of all threads that are there at the beginning, and of each. */
	COPIES_ALL = 2000, COPIES_LEAST = 10, COPIES_MOST = 99,
};

/* Who may not lock memory has 129 pages for each CPU by default (perf_event_mlock_kb), of which each ring takes one more than it has. */
static const struct {
	unsigned alone, with_waits, roomy; /* pages; roomy: where memory may be locked */
} ring_pages[FALLBACK_RINGS] = {
	[RING_CLOCK] = { 128, 64, 256 },
	[RING_COPIES] = { 0, 16, 512 },
	[RING_SWITCHES] = { 0, 32, 1024 },
};
#define ROOMY_PAGES 8192 /* of the last, on all CPUs together */

/* The software event depends on the order of opening (attach_thread()), the tracepoint does not. A switch is in the kernel: who may not look
 * there gets its record, and no sample. */
static void set_switch(const struct fallback *f, struct perf_event_attr *attr)
{
	if (f->kernel && f->switch_point) {
		attr->type = PERF_TYPE_TRACEPOINT;
		attr->config = f->switch_point;
	} else {
		attr->config = f->kernel ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_DUMMY;
	}
}

static struct perf_event_attr make_attr(const struct fallback *f, enum sample_kind kind)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .inherit = 1, .exclude_kernel = !f->kernel };

	switch (kind) {
	case SAMPLE_CLOCK:
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = 1000000000 / f->session->hz;
		attr.wakeup_events = 1;
		break;
	case SAMPLE_SWITCH:
		set_switch(f, &attr);
		attr.sample_period = 1;
		attr.context_switch = 1;
		attr.watermark = 1;
		attr.wakeup_watermark = WAKE_UP_BYTES;
		break;
	case SAMPLE_STACK: /* each switch at first; less often where there are many */
		set_switch(f, &attr);
		attr.freq = 1;
		attr.sample_freq = f->copies_hz;
		attr.wakeup_events = 1;
		break;
	default:
		break;
	}
	sample_ask(kind, f->kernel, kind == SAMPLE_STACK ? WAIT_DUMP_BYTES : SAMPLE_DUMP_BYTES, &attr);
	if (kind == SAMPLE_CLOCK || (kind == SAMPLE_SWITCH && !f->clock))
		sideband_ask(&attr);
	else
		sideband_ask_times(&attr);
	return attr;
}

static int explain(const struct fallback *f, pid_t pid, int code, struct err *err)
{
	if (code == ESRCH)
		return err_set(err, ESRCH, "process %d ended", (int)pid);
	if (code == EMFILE || code == ENFILE)
		return err_set(err, code, "too many threads for the limit of open files: raise it with ulimit -n");
	if (code == EACCES || code == EPERM)
		return err_set(err, code,
			       "no permission to sample process %d: it is not yours, or it is privileged: %s", (int)pid,
			       host_remedy(&f->host));
	return err_errno(err, code, "cannot sample process %d (perf_event_open)", (int)pid);
}

static size_t pages_of(const struct fallback *f, enum fallback_ring which)
{
	size_t pages = ring_pages[which].roomy;

	if (!f->waits)
		return ring_pages[which].alone;
	if (!host_capable(&f->host, CAP_IPC_LOCK) && f->host.memlock_bytes != UINT64_MAX)
		return ring_pages[which].with_waits;
	while (pages > 128 && pages * f->cpus > ROOMY_PAGES)
		pages /= 2;
	return pages;
}

enum fallback_ring fallback_ring_of(enum sample_kind kind)
{
	return kind == SAMPLE_CLOCK ? RING_CLOCK : kind == SAMPLE_STACK ? RING_COPIES : RING_SWITCHES;
}

/* The first event of a ring owns it; the others write into it. Takes fd over in any case. */
static int join_ring(struct fallback *f, int fd, int index, struct err *err)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct ring *ring = &f->rings[index];
	int r;

	if (ring->fd >= 0) {
		if (!ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
			vec_push(&f->fds, fd);
			return 0;
		}
		r = -errno;
		fd_close(&fd);
		return err_errno(err, -r, "cannot join perf events");
	}
	r = ring_init(ring, fd, pages_of(f, index / f->cpus));
	if (r == -EPERM)
		return err_set(err, EPERM,
			       "the limit of locked memory is too small for the sample buffers: raise it with "
			       "ulimit -l, or sysctl kernel.perf_event_mlock_kb");
	if (r < 0)
		return err_errno(err, -r, "cannot map a perf ring");
	ring->behind_time = SAMPLE_BEHIND_TIME;
	epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &ev);
	return 0;
}

static int open_event(struct fallback *f, enum sample_kind kind, struct perf_event_attr *attr, pid_t pid, pid_t tid, int cpu, struct err *err)
{
	int fd = ring_perf_open(attr, tid, cpu, -1, 0);
	uint64_t id;

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return explain(f, pid, -fd, err);
	if (!ioctl(fd, PERF_EVENT_IOC_ID, &id))
		*map_put(&f->kinds, id, kind) = kind;
	if (kind == SAMPLE_CLOCK)
		vec_push(&f->clocks, fd);
	return join_ring(f, fd, fallback_ring_of(kind) * f->cpus + cpu, err);
}

static bool wants(const struct fallback *f, enum sample_kind kind)
{
	return kind == SAMPLE_CLOCK ? f->clock : f->waits && (kind == SAMPLE_SWITCH || (kind == SAMPLE_STACK && f->kernel));
}

/*
 * The event that copies stacks is opened before the one that does not: the other way round, switches had no sample or an empty copy. At one
 * switch the kernel hands the same sample data to all software events of a thread, the last one opened first, and what one prepared the next one
 * takes over (decision 0030).
 */
static int attach_thread(struct fallback *f, pid_t pid, pid_t tid, struct err *err)
{
	static const enum sample_kind order[] = { SAMPLE_STACK, SAMPLE_CLOCK, SAMPLE_SWITCH };
	int r = 0;

	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		enum sample_kind kind = order[i];
		struct perf_event_attr attr = make_attr(f, kind);

		for (int cpu = 0; r >= 0 && wants(f, kind) && cpu < f->cpus; cpu++)
			r = open_event(f, kind, &attr, pid, tid, cpu, err);
	}
	return r;
}

/* New threads of threads that have an event inherit it; what was started in between is found by looking again. */
static int attach_process(struct fallback *f, pid_t pid, struct err *err)
{
	bool again = true;
	int r = 0;

	for (int pass = 0; again && pass < 10; pass++) {
		struct proc_ids tids = { 0 };

		again = false;
		r = proc_threads(pid, &tids);
		for (size_t i = 0; r >= 0 && i < tids.list.n; i++) {
			pid_t tid = tids.list.v[i];

			if (map_get(&f->attached, tid))
				continue;
			again = true;
			map_put(&f->attached, tid, pid);
			r = attach_thread(f, pid, tid, err);
			if (r == -ESRCH) /* that thread ended */
				r = 0;
		}
		vec_done(&tids.list);
		if (r < 0)
			return r;
	}
	return f->attached.n ? 0 : err_set(err, ESRCH, "process %d ended", (int)pid);
}

void attach_wakers(struct fallback *f)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT, .sample_period = 1, .watermark = 1,
					.wakeup_watermark = WAKE_UP_BYTES };
	struct tracefs_format format = { 0 };
	const struct tracefs_field *woken;
	int r = 0;

	if (!f->host.any_process || f->host.own_pids || tracefs_read_format("sched", "sched_waking", &format, NULL) < 0)
		return;
	woken = tracefs_find_field(&format, "pid");
	attr.config = format.id;
	sample_ask(SAMPLE_WAKING, true, 0, &attr);
	sideband_ask_times(&attr);
	for (int cpu = 0; woken && woken->size == sizeof(uint32_t) && r >= 0 && cpu < f->cpus; cpu++)
		r = open_event(f, SAMPLE_WAKING, &attr, 0, -1, cpu, NULL);
	if (woken && r >= 0)
		f->woken_at = woken->offset;
	tracefs_format_done(&format);
}

static void find_switch_point(struct fallback *f)
{
	struct tracefs_format format = { 0 };

	if (tracefs_read_format("sched", "sched_switch", &format, NULL) >= 0)
		f->switch_point = format.id;
	tracefs_format_done(&format);
}

/* The more threads there are, the less often each is looked at closely. */
static void choose_copies(struct fallback *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->session->options->pid_count; i++) {
		struct proc_ids tids = { 0 };

		proc_threads(f->session->options->pids[i], &tids);
		n += tids.list.n;
		vec_done(&tids.list);
	}
	f->copies_hz = MAX(COPIES_LEAST, MIN(COPIES_MOST, COPIES_ALL / MAX(n, 1)));
}

int attach_targets(struct fallback *f, struct err *err)
{
	int r = 0;

	if (f->waits) {
		choose_copies(f);
		find_switch_point(f);
	}
	for (size_t i = 0; r >= 0 && i < f->session->options->pid_count; i++)
		r = attach_process(f, f->session->options->pids[i], err);
	return r;
}
