#include "collect/perf/fallback.h"

#include <errno.h>
#include <linux/capability.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "collect/perf/ring.h"
#include "collect/perf/sideband.h"
#include "collect/unwind/userstack.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/host.h"
#include "target/proc.h"

enum {
	RING_PAGES = 128,      /* with one page more just what perf_event_mlock_kb allows by default */
	/* A record is 65,535 bytes at most. The kernel cuts a dump to fit, but rounds it up afterwards, and a
	 * size of 65,536 is 0 in its 16 bits: leave room for all the rest of a record. */
	DUMP_BYTES = 64000,
};

struct fallback {
	struct session *session;
	struct host host;
	struct ring *rings; /* by CPU */
	int cpus, epoll;
	bool kernel;
	VEC(int) fds; /* events that write into the rings of others */
	struct map attached; /* tids */
	VEC(struct unwind_table) tables; /* by module id; page_count 0 = none */
	uint64_t lost;
	uint64_t period_ns; /* that a sample stands for */
};

int fallback_open(struct session *s, struct fallback **ret, struct err *err)
{
	struct fallback *f = mem_alloc(sizeof(*f));

	f->session = s;
	f->period_ns = 1000000000 / s->hz;
	host_probe(&f->host);
	f->cpus = sysconf(_SC_NPROCESSORS_CONF);
	f->rings = mem_alloc(f->cpus * sizeof(*f->rings));
	for (int i = 0; i < f->cpus; i++)
		f->rings[i].fd = -1;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->kernel = f->host.paranoid < 2 || host_capable(&f->host, CAP_PERFMON) ||
		    host_capable(&f->host, CAP_SYS_ADMIN);
	if (f->host.paranoid > 2 && !host_capable(&f->host, CAP_PERFMON) &&
	    !host_capable(&f->host, CAP_SYS_ADMIN)) {
		int level = f->host.paranoid;

		fallback_close(f);
		return err_set(err, EACCES,
			       "kernel.perf_event_paranoid is %d (Debian's default is 3), which forbids ordinary users "
			       "to sample even their own processes: run gasflame with sudo, or allow it with: "
			       "sudo sysctl kernel.perf_event_paranoid=2", level);
	}
	*ret = f;
	return 0;
}

void fallback_close(struct fallback *f)
{
	if (!f)
		return;
	vec_done_each(&f->fds, e, fd_close(e));
	for (int i = 0; i < f->cpus; i++)
		ring_done(&f->rings[i]);
	free(f->rings);
	vec_done_each(&f->tables, e, unwind_done(e));
	map_done(&f->attached);
	fd_close(&f->epoll);
	free(f);
}

static struct perf_event_attr make_attr(const struct fallback *f)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / f->session->hz,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN |
			       PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
		.sample_stack_user = DUMP_BYTES,
		.exclude_callchain_user = 1,
		.sample_max_stack = SHARED_MAX_KERNEL_FRAMES,
		.exclude_kernel = !f->kernel,
		.exclude_callchain_kernel = !f->kernel,
		.inherit = 1,
		.wakeup_events = 1,
	};

	for (unsigned bit = 0; bit < UNWIND_PERF_BITS; bit++)
		attr.sample_regs_user |= (uint64_t)(unwind_perf_register(UNWIND_HOST, bit) >= 0) << bit;
	sideband_ask(&attr);
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

/* The first event of a CPU gets the ring; the others write into it. */
static int open_on_cpu(struct fallback *f, pid_t pid, pid_t tid, int cpu, struct err *err)
{
	struct perf_event_attr attr = make_attr(f);
	struct ring *ring = &f->rings[cpu];
	int fd = ring_perf_open(&attr, tid, cpu, -1, 0), r;

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return explain(f, pid, -fd, err);
	if (ring->fd < 0) {
		struct epoll_event ev = { .events = EPOLLIN };

		r = ring_init(ring, fd, RING_PAGES);
		if (r == -EPERM)
			return err_set(err, EPERM,
				       "the limit of locked memory is too small for the sample buffers: raise it with "
				       "ulimit -l, or sysctl kernel.perf_event_mlock_kb");
		if (r < 0)
			return err_errno(err, -r, "cannot map a perf ring");
		epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &ev);
		return 0;
	}
	if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd)) {
		r = -errno;
		fd_close(&fd);
		return err_errno(err, -r, "cannot join perf events");
	}
	vec_push(&f->fds, fd);
	return 0;
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
			map_put(&f->attached, tid, 1);
			for (int cpu = 0; r >= 0 && cpu < f->cpus; cpu++)
				r = open_on_cpu(f, pid, tid, cpu, err);
			if (r == -ESRCH) /* that thread ended */
				r = 0;
		}
		vec_done(&tids.list);
		if (r < 0)
			return r;
	}
	return f->attached.n ? 0 : err_set(err, ESRCH, "process %d ended", (int)pid);
}

int fallback_start(struct fallback *f, struct err *err)
{
	collector_add_cpu_event(f->session);
	for (size_t i = 0; i < f->session->options->pid_count; i++) {
		int r = attach_process(f, f->session->options->pids[i], err);

		if (r < 0)
			return r;
	}
	if (!f->kernel)
		log_info("Kernel stacks are left out: perf_event_paranoid is %d. CPU time in the kernel is not seen.",
			 f->host.paranoid);
	return 0;
}

/* --- one sample --- */

static uint64_t rule_of(void *context, uint32_t module, uint64_t address)
{
	struct fallback *f = context;

	if (module < f->tables.n && f->tables.v[module].page_count)
		return unwind_find(&f->tables.v[module], address);
	return RULE_FRAME_POINTER;
}

static enum shared_reason unwind_dump(struct fallback *f, pid_t pid, struct unwind_regs *regs, struct unwind_dump *d,
				      uint64_t *frames, uint16_t *ret_count)
{
	struct userstack how = { .processes = f->session->processes, .pid = pid, .rule = rule_of,
				 .rule_context = f, .read = unwind_read_dump, .read_context = d };
	enum shared_reason reason = userstack_walk(&how, regs, frames, ret_count);

	if (how.guessed)
		profile_count(f->session->profile, KEY_SAMPLES_GUESSED, 1);
	if (how.derived)
		profile_count(f->session->profile, KEY_SAMPLES_DERIVED, 1);
	/* The dump is as long as a dump can be: the stack went on. */
	if (reason == REASON_BAD_STACK && d->beyond && d->size > DUMP_BYTES - 4096)
		reason = REASON_DUMP_SHORT;
	return reason;
}

/* ip, pid/tid, time, period, callchain, user registers, user stack: in the order of their bits. */
static void got_sample(struct fallback *f, const struct perf_event_header *h)
{
	struct reader r = reader_of(h, h->size);
	uint64_t frames[SHARED_MAX_USER_FRAMES + SHARED_MAX_KERNEL_FRAMES], kernel[SHARED_MAX_KERNEL_FRAMES];
	struct shared_record out = { .kind = RECORD_CPU };
	struct unwind_regs regs = { .leaf = true };
	struct unwind_dump d = { 0 };
	uint64_t chain, dump_bytes;
	uint32_t stack;

	reader_skip(&r, sizeof(*h) + 8);
	out.pid = reader_u32(&r);
	out.tid = reader_u32(&r);
	out.time_ns = reader_u64(&r);
	/* The record has the period that the clock was opened with, also when it ticks at another rate. */
	reader_skip(&r, sizeof(uint64_t));
	out.value = f->period_ns;
	chain = reader_u64(&r);
	for (uint64_t i = 0; i < chain && reader_more(&r); i++) {
		uint64_t address = reader_u64(&r);

		if (address < PERF_CONTEXT_MAX && out.kernel_count < SHARED_MAX_KERNEL_FRAMES)
			kernel[out.kernel_count++] = address;
	}
	if (reader_u64(&r) == PERF_SAMPLE_REGS_ABI_64) {
		for (unsigned bit = 0; bit < UNWIND_PERF_BITS; bit++)
			if (unwind_perf_register(UNWIND_HOST, bit) >= 0)
				regs.r[unwind_perf_register(UNWIND_HOST, bit)] = reader_u64(&r);
		dump_bytes = reader_u64(&r);
		d.bytes = reader_bytes(&r, dump_bytes);
		d.size = dump_bytes ? reader_u64(&r) : 0;
		d.sp = regs.r[UNWIND_RSP];
		if (r.failed || d.size > dump_bytes)
			return;
		out.reason = unwind_dump(f, out.pid, &regs, &d, frames, &out.user_count);
	} else {
		out.reason = REASON_NO_REGISTERS;
	}
	if (out.reason == REASON_NO_MAPPING)
		processes_dirty(f->session->processes, out.pid);
	memcpy(frames + out.user_count, kernel, out.kernel_count * sizeof(*kernel));
	stack = collector_stack(f->session, &out, frames);
	collector_cpu_sample(f->session, &out, stack);
}

static void got(void *context, const struct perf_event_header *h)
{
	struct fallback *f = context;

	if (h->type == PERF_RECORD_SAMPLE)
		got_sample(f, h);
	else
		sideband_record(f->session->processes, h, &f->lost);
}

void fallback_drain(struct fallback *f)
{
	ring_drain(f->rings, f->cpus, got, f);
	processes_refresh(f->session->processes);
}

int fallback_poll(struct fallback *f, int timeout_ms)
{
	uint64_t until = clock_mono_ns() + timeout_ms * 1000000ULL, now;
	struct pollfd p[] = { { .fd = f->epoll, .events = POLLIN },
			      { .fd = processes_event(f->session->processes), .events = POLLIN } };

	while ((now = clock_mono_ns()) < until) {
		timeout_ms = (until - now + 999999) / 1000000;
		if (poll(p, ARRAY_LEN(p), processes_timeout(f->session->processes, timeout_ms)) < 0)
			return -errno;
		processes_refresh(f->session->processes);
		if (!(p[0].revents & (POLLIN | POLLHUP)))
			continue;
		fallback_drain(f);
		/* When the last thread ends its ring hangs up, and poll would return at once for ever. */
		if (p[0].revents & POLLHUP)
			break;
	}
	return 0;
}

static void each_event(struct fallback *f, unsigned long request, uint64_t *argument)
{
	for (int i = 0; i < f->cpus; i++)
		if (f->rings[i].fd >= 0)
			ioctl(f->rings[i].fd, request, argument);
	for (size_t i = 0; i < f->fds.n; i++)
		ioctl(f->fds.v[i], request, argument);
}

void fallback_set_hz(struct fallback *f, uint64_t hz)
{
	uint64_t period = 1000000000 / hz;

	fallback_drain(f); /* what was sampled at the old rate */
	f->period_ns = period;
	each_event(f, PERF_EVENT_IOC_PERIOD, &period);
}

void fallback_pause(struct fallback *f, bool pause)
{
	each_event(f, pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, NULL);
}

uint64_t fallback_lost(const struct fallback *f)
{
	return f->lost;
}

bool fallback_kernel(const struct fallback *f)
{
	return f->kernel;
}

/* --- what processes.c finds is kept here --- */

static void sink_announce(void *context, uint32_t module)
{
}

static void *copy(const void *from, size_t bytes)
{
	void *to = mem_alloc(bytes);

	memcpy(to, from, bytes);
	return to;
}

static void sink_table(void *context, uint32_t module, const struct unwind_table *table)
{
	struct fallback *f = context;
	struct unwind_table *t;

	while (f->tables.n <= module)
		vec_push(&f->tables, (struct unwind_table){ 0 });
	if (!table)
		return;
	t = &f->tables.v[module];
	*t = *table;
	t->pages = copy(table->pages, table->page_count * sizeof(*t->pages));
	t->rows = copy(table->rows, table->row_count * sizeof(*t->rows));
	t->rules = copy(table->rules, table->rule_count * sizeof(*t->rules));
}

static void sink_mappings(void *context, pid_t pid, uint64_t born, const struct shared_mapping *list, uint32_t count)
{
	/* They are asked for at each sample (processes_mappings). */
}

static void sink_gone(void *context, pid_t pid, uint64_t born)
{
}

const struct processes_sink fallback_sink = {
	.announce = sink_announce,
	.table = sink_table,
	.mappings = sink_mappings,
	.gone = sink_gone,
};
