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
#include "collect/collector.h"
#include "collect/process/processes.h"
#include "collect/perf/fallbackstate.h"
#include "collect/perf/ring.h"
#include "collect/perf/sideband.h"
#include "collect/perf/switches.h"
#include "collect/unwind/userstack.h"
#include "profile/keys.h"
#include "profile/profile.h"
#include "target/host.h"
#include "target/proc.h"

/* Where even a clock does not open. */
static int explain_none(const struct host *h, struct err *err)
{
	if (h->paranoid > 2 && host_capable(h, CAP_PERFMON))
		return err_set(err, EACCES,
			       "kernel.perf_event_paranoid is %d, where this kernel asks for CAP_SYS_ADMIN: run gasflame with sudo, or allow it "
			       "with: sudo sysctl kernel.perf_event_paranoid=2", h->paranoid);
	if (h->paranoid > 2)
		return err_set(err, EACCES,
			       "kernel.perf_event_paranoid is %d (Debian's default is 3), which forbids ordinary users "
			       "to sample even their own processes: run gasflame with sudo, or allow it with: "
			       "sudo sysctl kernel.perf_event_paranoid=2", h->paranoid);
	return err_set(err, EACCES, "the kernel refuses perf events: %s", host_remedy(h));
}

int fallback_open(struct session *s, struct fallback **ret, struct err *err)
{
	struct fallback *f = mem_alloc(sizeof(*f));

	f->session = s;
	f->period_ns = 1000000000 / s->hz;
	f->clock = collector_any(s, COLLECTOR_CLOCK);
	f->waits = s->chosen[COLLECTOR_wait];
	host_probe(&f->host);
	f->cpus = sysconf(_SC_NPROCESSORS_CONF);
	f->rings = mem_alloc(FALLBACK_RINGS * f->cpus * sizeof(*f->rings));
	for (int i = 0; i < FALLBACK_RINGS * f->cpus; i++)
		f->rings[i].fd = -1;
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	f->kernel = f->host.kernel_clock;
	if ((f->clock || f->waits) && !f->host.software_clock) {
		int r = explain_none(&f->host, err);

		fallback_close(f);
		return r;
	}
	*ret = f;
	return 0;
}

void fallback_close(struct fallback *f)
{
	if (!f)
		return;
	vec_done_each(&f->fds, e, fd_close(e));
	vec_done(&f->clocks);
	for (int i = 0; i < FALLBACK_RINGS * f->cpus; i++)
		ring_done(&f->rings[i]);
	free(f->rings);
	vec_done_each(&f->tables, e, unwind_done(e));
	map_done(&f->attached);
	map_done(&f->kinds);
	switches_free(f->switches);
	fd_close(&f->epoll);
	free(f);
}

/* --- stacks --- */

static uint64_t rule_of(void *context, uint32_t module, uint64_t address)
{
	struct fallback *f = context;

	if (module < f->tables.n && f->tables.v[module].page_count)
		return unwind_find(&f->tables.v[module], address);
	return RULE_FRAME_POINTER;
}

static enum shared_reason unwind_dump(struct fallback *f, pid_t pid, struct unwind_regs *regs, struct unwind_dump *d, uint32_t room,
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
	if (reason == REASON_BAD_STACK && d->beyond && d->size > room - 4096)
		reason = REASON_DUMP_SHORT;
	return reason;
}

static enum shared_reason unwind_live(struct fallback *f, pid_t pid, struct unwind_regs *regs, uint64_t *frames, uint16_t *ret_count)
{
	struct userstack how = { .processes = f->session->processes, .pid = pid, .rule = rule_of,
				 .rule_context = f, .read = userstack_read_process, .read_context = &pid };

	return userstack_walk(&how, regs, frames, ret_count);
}

/* A switches_unwind_fn. */
static uint32_t unwind_wait(void *context, const struct sample *x, bool live)
{
	struct shared_record r = { .pid = x->pid, .tid = x->tid };
	uint64_t frames[SHARED_MAX_USER_FRAMES];
	struct unwind_dump dump = x->dump;
	struct unwind_regs regs = x->regs;
	struct fallback *f = context;

	r.reason = live ? unwind_live(f, x->pid, &regs, frames, &r.user_count)
			: unwind_dump(f, x->pid, &regs, &dump, WAIT_DUMP_BYTES, frames, &r.user_count);
	if (r.reason == REASON_NO_MAPPING)
		processes_dirty(f->session->processes, x->pid);
	if (live && r.reason == REASON_BAD_STACK)
		return PROFILE_NONE;
	return collector_stack(f->session, &r, frames);
}

/* Everything is open: the recording begins now. Threads that are heard of from here on do what their records say, and the others what
 * they do now. */
static void begin_waits(struct fallback *f)
{
	collector_begin(f->session);
	fallback_drain(f);
	for (size_t i = 0; i < f->attached.capacity; i++) {
		const struct map_slot *slot = &f->attached.slots[i];
		struct proc_stat st;

		if (slot->used && !proc_thread_stat(slot->value, slot->key, &st))
			switches_found(f->switches, slot->value, slot->key, st.state != 'R');
	}
}

static void say_what_is_missing(const struct fallback *f)
{
	if (f->clock && !f->kernel)
		log_info("Kernel stacks are left out: perf_event_paranoid is %d. CPU time in the kernel is not seen.", f->host.paranoid);
	if (f->waits && !f->kernel)
		log_info("Waits have no stacks: perf_event_paranoid is %d.", f->host.paranoid);
	else if (f->waits && !f->woken_at)
		log_info("Who ended a wait is not recorded: %s.",
			 !*f->host.tracefs ? "the kernel's tracepoints (tracefs) cannot be read" : "other processes may not be looked at");
}

int fallback_start(struct fallback *f, struct err *err)
{
	int r;

	if (!f->clock && !f->waits)
		return 0;
	if (f->clock)
		collector_add_cpu_event(f->session);
	if (f->waits)
		f->switches = switches_new(f->session, f->kernel, unwind_wait, f);
	r = attach_targets(f, err);
	if (r < 0)
		return r;
	if (f->waits) {
		attach_wakers(f);
		begin_waits(f);
	}
	say_what_is_missing(f);
	return 0;
}

/* --- records --- */

static void got_clock(struct fallback *f, struct sample *x)
{
	uint64_t frames[SHARED_MAX_USER_FRAMES + SHARED_MAX_KERNEL_FRAMES];
	/* The record has the period that the clock was opened with, also when it ticks at another rate. */
	struct shared_record out = { .kind = RECORD_CPU, .pid = x->pid, .tid = x->tid, .time_ns = x->time_ns, .value = f->period_ns,
				     .kernel_count = x->kernel_count, .reason = REASON_NO_REGISTERS };

	if (x->has_regs)
		out.reason = unwind_dump(f, x->pid, &x->regs, &x->dump, SAMPLE_DUMP_BYTES, frames, &out.user_count);
	if (out.reason == REASON_NO_MAPPING)
		processes_dirty(f->session->processes, x->pid);
	memcpy(frames + out.user_count, x->kernel, x->kernel_count * sizeof(*frames));
	collector_cpu_sample(f->session, &out, collector_stack(f->session, &out, frames));
}

static bool is_over(const struct fallback *f, uint64_t time_ns)
{
	return f->end_ns && time_ns >= f->end_ns;
}

static void got_waking(struct fallback *f, const struct sample *x)
{
	struct reader r = reader_of(x->raw, x->raw_bytes);
	uint32_t woken;

	reader_skip(&r, f->woken_at);
	woken = reader_u32(&r);
	if (!r.failed)
		switches_waking(f->switches, x, woken);
}

static void got_sample(struct fallback *f, const struct perf_event_header *h)
{
	const uint64_t *kind = map_get(&f->kinds, sample_id(h));
	struct sample x;

	if (!kind || !sample_read(*kind, h, &x) || (*kind != SAMPLE_CLOCK && is_over(f, x.time_ns)))
		return;
	switch (*kind) {
	case SAMPLE_CLOCK:
		got_clock(f, &x);
		break;
	case SAMPLE_SWITCH:
		switches_sample(f->switches, &x);
		break;
	case SAMPLE_STACK:
		switches_stack(f->switches, &x);
		break;
	case SAMPLE_WAKING:
		got_waking(f, &x);
		break;
	}
}

/* The id is of one of the ring's events. Copies of stacks at switches come when there is room: of one that is lost nothing is missing. */
static void got_lost(struct fallback *f, const struct perf_event_header *h)
{
	const struct {
		struct perf_event_header h;
		uint64_t id, lost;
	} *r = (const void *)h;
	const uint64_t *kind = map_get(&f->kinds, r->id);

	if (!kind || fallback_ring_of(*kind) == RING_CLOCK)
		f->lost += r->lost;
	else if (fallback_ring_of(*kind) == RING_SWITCHES)
		f->waits_lost += r->lost;
}

/* What the waits want to know beside switches. */
static void tell_waits(struct fallback *f, const struct perf_event_header *h)
{
	const struct {
		struct perf_event_header h;
		uint32_t pid, parent_pid, tid, parent_tid;
	} *task = (const void *)h;
	struct sample_end end = sample_end(h);

	if (h->type == PERF_RECORD_SWITCH && h->misc & PERF_RECORD_MISC_SWITCH_OUT)
		switches_out(f->switches, end.pid, end.tid, h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT, end.time_ns);
	else if (h->type == PERF_RECORD_SWITCH)
		switches_in(f->switches, end.pid, end.tid, end.time_ns);
	else if (h->type == PERF_RECORD_FORK && processes_knows(f->session->processes, task->pid))
		switches_started(f->switches, task->pid, task->tid, end.time_ns);
	else if (h->type == PERF_RECORD_EXIT && processes_knows(f->session->processes, task->pid))
		switches_ended(f->switches, task->pid, task->tid, end.time_ns);
	else if (h->type == PERF_RECORD_COMM && h->misc & PERF_RECORD_MISC_COMM_EXEC)
		switches_executed(f->switches, end.pid, end.time_ns);
}

static void got(void *context, const struct perf_event_header *h)
{
	struct fallback *f = context;
	uint64_t ignored;

	if (h->type == PERF_RECORD_SAMPLE) {
		got_sample(f, h);
		return;
	}
	if (h->type == PERF_RECORD_LOST)
		got_lost(f, h);
	if (h->type != PERF_RECORD_SWITCH)
		sideband_record(f->session->processes, h, &ignored);
	if (f->switches && !is_over(f, sample_end(h).time_ns))
		tell_waits(f, h);
}

void fallback_drain(struct fallback *f)
{
	ring_drain(f->rings, FALLBACK_RINGS * f->cpus, got, f);
	if (f->switches && switches_look(f->switches)) {
		ring_drain(f->rings, FALLBACK_RINGS * f->cpus, got, f);
		switches_looked(f->switches);
	}
	processes_refresh(f->session->processes);
}

void fallback_finish(struct fallback *f, uint64_t now_mono_ns)
{
	f->end_ns = now_mono_ns;
	fallback_drain(f);
	if (f->switches)
		switches_finish(f->switches, now_mono_ns);
}

void fallback_peek(struct fallback *f, uint64_t now_mono_ns)
{
	if (f->switches)
		switches_peek(f->switches, now_mono_ns);
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

static void each_clock(struct fallback *f, unsigned long request, uint64_t *argument)
{
	for (size_t i = 0; i < f->clocks.n; i++)
		ioctl(f->clocks.v[i], request, argument);
}

void fallback_set_hz(struct fallback *f, uint64_t hz)
{
	uint64_t period = 1000000000 / hz;

	fallback_drain(f); /* what was sampled at the old rate */
	f->period_ns = period;
	each_clock(f, PERF_EVENT_IOC_PERIOD, &period);
}

/* Not the switches: each thread's account is of all its time. */
void fallback_pause(struct fallback *f, bool pause)
{
	each_clock(f, pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE, NULL);
}

uint64_t fallback_lost(const struct fallback *f)
{
	return f->lost;
}

uint64_t fallback_waits_lost(const struct fallback *f)
{
	return f->waits_lost;
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
