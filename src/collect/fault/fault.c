/*
 * fault.c - the fault collector: every page fault of the targets, and what memory pressure does to them.
 *
 * Events of the profile: "major-faults" and "minor-faults" by count, "major-time" and "minor-time" by
 * nanoseconds from entering the kernel to the end of the fault, "reclaims" and "reclaim-time" for threads
 * that had to free memory themselves. Below the stack a note says what was touched (faultmap.h).
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/file/fd.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "collect/collector.h"
#include "collect/bpfengine.h"
#include "collect/fault/faultmap.h"
#include "collect/pressure.h"
#include "collect/process/processes.h"
#include "collect/perf/ring.h"
#include "profile/keys.h"
#include "profile/profile.h"

#include "gasflame.skel.h"

enum { STORE_TRIES = 20, STORE_PAUSE_MS = 5 }; /* until the kernel has memory for each thread */

/* A thread and what was seen of it. */
struct faulter {
	uint32_t thread;
	uint64_t minor, major;
};

struct fault {
	int *events; /* two for each CPU */
	int event_count;
	VEC(struct bpf_link *) links;
	uint32_t major, minor, major_time, minor_time, reclaims, reclaim_time;
	uint32_t lost, taken; /* stacks of the profile that stand for those without one */
	VEC(struct faulter) faulters;
	struct map by_thread; /* pid, tid to an index of faulters */
	struct faultmap *map;
	struct pressure *pressure;
};

static struct fault *own(const struct session *s)
{
	return s->state[COLLECTOR_fault];
}

static uint32_t marker(struct profile *p, const char *name)
{
	return profile_stack(p, 0, profile_named_frame(p, PROFILE_NONE, FRAME_KERNEL, name));
}

static void add_events(struct fault *f, struct profile *p)
{
	f->major = profile_add_event(p, "major-faults", "count", "page faults that waited for the disk", 0);
	f->minor = profile_add_event(p, "minor-faults", "count", "page faults served from memory", 0);
	f->major_time = profile_add_event(p, "major-time", "ns", "time in faults that waited for disk", 0);
	f->minor_time = profile_add_event(p, "minor-time", "ns", "time in faults served from memory", 0);
	f->reclaims = profile_add_event(p, "reclaims", "count", "times a thread had to free memory", 0);
	f->reclaim_time = profile_add_event(p, "reclaim-time", "ns", "time of threads freeing memory", 0);
	f->lost = marker(p, "[stack lost]");
	f->taken = marker(p, "[taken by the kernel: populating, locking, direct I/O]");
}

/* --- beginning --- */

static int count_faults(struct fault *f, int cpu, uint64_t config, int program, struct err *err)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = config, .sample_period = 1,
					.sample_type = PERF_SAMPLE_ADDR, .disabled = 1 };
	int fd = ring_perf_open(&attr, -1, cpu, -1, 0);

	if (fd == -ENODEV)
		return 0;
	if (fd < 0)
		return err_errno(err, -fd, "cannot count page faults of CPU %d (perf_event_open)", cpu);
	f->events[f->event_count++] = fd;
	if (ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return err_errno(err, errno, "cannot attach to page faults of CPU %d", cpu);
	return 0;
}

static int count_all_faults(struct fault *f, struct gasflame_bpf *skeleton, struct err *err)
{
	int cpus = sysconf(_SC_NPROCESSORS_CONF), r = 0;

	f->events = mem_alloc(2 * cpus * sizeof(*f->events));
	for (int cpu = 0; cpu < cpus && r >= 0; cpu++) {
		r = count_faults(f, cpu, PERF_COUNT_SW_PAGE_FAULTS_MIN,
				 bpf_program__fd(skeleton->progs.on_minor_fault), err);
		if (r >= 0)
			r = count_faults(f, cpu, PERF_COUNT_SW_PAGE_FAULTS_MAJ,
					 bpf_program__fd(skeleton->progs.on_major_fault), err);
	}
	return r;
}

static bool attach(struct fault *f, struct bpf_program *program, const char *tracepoint)
{
	struct bpf_link *link = bpf_program__attach_raw_tracepoint(program, tracepoint);

	if (link)
		vec_push(&f->links, link);
	return link;
}

/* The report lists the tracepoints that a kernel lacks; only the end of threads is needed for the counts. */
static int attach_tracepoints(struct fault *f, struct gasflame_bpf *skeleton, struct profile *p,
			      struct err *err)
{
	if (!attach(f, skeleton->progs.on_fault_exit, "sched_process_exit"))
		return err_errno(err, errno, "cannot attach to the kernel's sched_process_exit tracepoint");
	if (!attach(f, skeleton->progs.on_fault_enter, "page_fault_user"))
		profile_count_set(p, KEY_FAULTS_NO_TIME, 1);
	attach(f, skeleton->progs.on_fault_enter, "page_fault_kernel");
	if (!attach(f, skeleton->progs.on_reclaim_begin, "mm_vmscan_direct_reclaim_begin") ||
	    !attach(f, skeleton->progs.on_reclaim_end, "mm_vmscan_direct_reclaim_end"))
		profile_count_set(p, KEY_RECLAIM_NOT_SEEN, 1);
	if (attach(f, skeleton->progs.on_reclaim_begin, "mm_vmscan_memcg_reclaim_begin"))
		attach(f, skeleton->progs.on_reclaim_end, "mm_vmscan_memcg_reclaim_end");
	if (!attach(f, skeleton->progs.on_kswapd_wake, "mm_vmscan_kswapd_wake"))
		profile_count_set(p, KEY_KSWAPD_NOT_SEEN, 1);
	return 0;
}

/* Runs a program over all tasks of the system. */
static int each_task(struct gasflame_bpf *skeleton, struct err *err)
{
	struct bpf_link *link = bpf_program__attach_iter(skeleton->progs.on_each_task, NULL);
	_cleanup_fd_ int fd = -1;
	char nothing[64];
	ssize_t n = 0;

	if (link)
		fd = bpf_iter_create(bpf_link__fd(link));
	if (fd >= 0)
		while ((n = read(fd, nothing, sizeof(nothing))) > 0 || (n < 0 && errno == EAGAIN))
			;
	if (fd < 0 || n < 0) {
		err_errno(err, errno, "cannot go through the kernel's tasks");
		bpf_link__destroy(link);
		return -EIO;
	}
	bpf_link__destroy(link);
	return 0;
}

/*
 * Notes each thread that there is. The kernel gives the memory for that from a few pieces that it has ready for each CPU, makes more of them in an
 * interrupt, and gives none while that CPU is in the middle of it: what failed is tried again.
 */
static int note_threads(struct gasflame_bpf *skeleton, struct err *err)
{
	int r = each_task(skeleton, err);

	for (int i = 0; r >= 0 && skeleton->bss->fault_unstored && i < STORE_TRIES; i++) {
		skeleton->bss->fault_unstored = 0;
		poll(NULL, 0, STORE_PAUSE_MS);
		r = each_task(skeleton, err);
	}
	/* Without it no fault would be counted, and the recording would look as if there were none. */
	if (r >= 0 && skeleton->bss->fault_unstored)
		r = err_set(err, ENOMEM, "this kernel has no memory for what each thread faults (BPF task storage; from Linux 6.19 on it has "
					 "none on a processor without cmpxchg16b): leave fault out of -e");
	return r;
}

static int start(struct session *s, struct err *err)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	struct fault *f = own(s);
	int r;

	add_events(f, s->profile);
	f->map = faultmap_new(s->profile, s->options->pids, s->options->pid_count);
	f->pressure = pressure_new(s->profile, s->options->pids, s->options->pid_count, s->start_mono_ns);
	skeleton->bss->fault_start_ns = clock_mono_ns();
	r = attach_tracepoints(f, skeleton, s->profile, err);
	if (r >= 0)
		r = count_all_faults(f, skeleton, err);
	return r >= 0 ? note_threads(skeleton, err) : r;
}

/* --- what comes in --- */

static struct faulter *faulter_of(struct session *s, uint32_t pid, uint32_t tid, const char name_bytes[16],
				  uint64_t time_ns)
{
	struct fault *f = own(s);
	uint64_t *at = map_get(&f->by_thread, map_pair(pid, tid));
	char name[16];

	if (at)
		return &f->faulters.v[*at];
	memcpy(name, name_bytes, sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	vec_push(&f->faulters,
		 (struct faulter){ .thread = processes_thread(s->processes, pid, tid, name, time_ns) });
	*map_put(&f->by_thread, map_pair(pid, tid), 0) = f->faulters.n - 1;
	return &f->faulters.v[f->faulters.n - 1];
}

static void add_sample(struct session *s, struct profile_sample sample, uint32_t event, uint64_t value,
		       uint32_t count)
{
	if (!value)
		return;
	sample.event = event;
	sample.value = value;
	sample.count = count;
	profile_add_sample(s->profile, &sample);
}

static void add_faults(struct session *s, const struct shared_fault *r)
{
	struct fault *f = own(s);
	struct faulter *who = faulter_of(s, r->pid, r->tid, r->name, r->time_ns);
	uint32_t stack = bpfengine_stack(s->engine, r->stack);
	struct profile_sample sample = { .time_ns = collector_time_ns(s, r->time_ns), .thread = who->thread };

	sample.stack = faultmap_stack(f->map, r, stack == PROFILE_NONE ? f->lost : stack, clock_mono_ns());
	if (r->what == FAULT_MAJOR) {
		who->major += r->count;
		add_sample(s, sample, f->major, r->count, r->count);
		add_sample(s, sample, f->major_time, r->spent_ns, r->count);
	} else if (r->what == FAULT_MINOR) {
		who->minor += r->count;
		add_sample(s, sample, f->minor, r->count, r->count);
		add_sample(s, sample, f->minor_time, r->spent_ns, r->count);
	} else {
		add_sample(s, sample, f->reclaims, r->count, r->count);
		add_sample(s, sample, f->reclaim_time, r->spent_ns, r->count);
	}
}

/* Adds the kernel's counts for a thread, and the faults that were not among the events. */
static void end_thread(struct session *s, const struct shared_fault_end *r)
{
	struct fault *f = own(s);
	struct faulter *who = faulter_of(s, r->pid, r->tid, r->name, r->time_ns);
	uint64_t minor = r->minor > who->minor ? r->minor - who->minor : 0;
	uint64_t major = r->major > who->major ? r->major - who->major : 0;
	struct profile_sample sample = { .time_ns = collector_time_ns(s, r->time_ns), .thread = who->thread,
					 .stack = f->taken };

	map_remove(&f->by_thread, map_pair(r->pid, r->tid));
	/* They were at any time of the recording. */
	if (s->options->windows)
		return;
	add_sample(s, sample, f->minor, minor, MIN(minor, UINT32_MAX));
	add_sample(s, sample, f->major, major, MIN(major, UINT32_MAX));
	profile_count(s->profile, KEY_FAULTS_MINOR, r->minor);
	profile_count(s->profile, KEY_FAULTS_MAJOR, r->major);
	profile_count(s->profile, KEY_FAULTS_WITHOUT_EVENT, minor + major);
}

static void record(struct session *s, const void *data, size_t size)
{
	const struct shared_fault *r = data;

	if (r->kind == RECORD_FAULTS && size >= sizeof(*r))
		add_faults(s, r);
	else if (r->kind == RECORD_FAULT_END && size >= sizeof(struct shared_fault_end))
		end_thread(s, data);
}

static void tick(struct session *s, uint64_t now_mono_ns)
{
	pressure_tick(own(s)->pressure, now_mono_ns);
}

/* --- the end --- */

static void tally(struct session *s, struct profile *p)
{
	struct shared_fault_counts counts;

	profile_count(p, KEY_FAULTS_LOOKED_UP, faultmap_looked_up(own(s)->map));
	profile_count(p, KEY_FAULTS_UNKNOWN_ADDRESS, faultmap_unknown(own(s)->map));
	if (!bpfengine_sum(bpfengine_skeleton(s->engine)->maps.fault_counts, 0, &counts, sizeof(counts)))
		return;
	profile_count(p, KEY_FAULTS_STACKS_WALKED, counts.walked);
	profile_count(p, KEY_FAULTS_STACKS_REMEMBERED, counts.remembered);
	profile_count(p, KEY_FAULTS_LOST, counts.lost_faults);
	profile_count(p, KEY_KSWAPD_WAKES, counts.kswapd_wakes);
}

/* Threads tell what they have left, as often as the ring needs to take it all. */
static void end_threads(struct session *s, struct gasflame_bpf *skeleton)
{
	struct err err = { 0 };

	skeleton->bss->fault_ending = 1;
	for (int tries = 0; tries < 100; tries++) {
		skeleton->bss->fault_unsent = 0;
		if (each_task(skeleton, &err) < 0) {
			profile_count_set(s->profile, KEY_FAULTS_NO_END, 1);
			return;
		}
		bpfengine_drain(s->engine);
		if (!skeleton->bss->fault_unsent)
			return;
	}
}

static void stop(struct session *s)
{
	struct gasflame_bpf *skeleton = bpfengine_skeleton(s->engine);
	struct fault *f = own(s);

	pressure_tick(f->pressure, clock_mono_ns());
	end_threads(s, skeleton);
	for (int i = 0; i < f->event_count; i++)
		fd_close(&f->events[i]);
	for (size_t i = 0; i < f->links.n; i++)
		bpf_link__destroy(f->links.v[i]);
	bpfengine_drain(s->engine);
	tally(s, s->profile);
	vec_done(&f->links);
	vec_done(&f->faulters);
	map_done(&f->by_thread);
	faultmap_free(f->map);
	pressure_free(f->pressure);
	free(f->events);
}

static void thin(struct session *s, unsigned step)
{
	bpfengine_skeleton(s->engine)->bss->fault_thin = step;
}

static uint64_t looked_at(struct session *s)
{
	struct shared_fault_counts counts;

	return bpfengine_sum(bpfengine_skeleton(s->engine)->maps.fault_counts, 0, &counts, sizeof(counts)) ? counts.walked : 0;
}

static uint64_t recorded(const struct session *s)
{
	struct shared_fault_counts c;

	return bpfengine_sum(bpfengine_skeleton(s->engine)->maps.fault_counts, 0, &c, sizeof(c)) ? c.walked + c.remembered : 0;
}

static const char *const fault_programs[] = {
	"on_minor_fault",   "on_major_fault", "on_fault_enter", "on_fault_exit",
	"on_reclaim_begin", "on_reclaim_end", "on_kswapd_wake", "on_each_task", NULL,
};

const struct collector collector_fault = {
	.name = "fault",
	.describe = "page faults by stack and file, with their time; memory pressure",
	.flags = COLLECTOR_PRESSURE,
	.state_size = sizeof(struct fault),
	.programs = fault_programs,
	.start = start,
	.record = record,
	.thin = thin,
	.thin_steps = 6,
	.looked_at = looked_at,
	.recorded = recorded,
	/* No pause: the counts are to equal the kernel's. */
	.tick = tick,
	.tally = tally,
	.stop = stop,
};
