#include "collect/budget/surcharge.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "collect/perf/ring.h"

#define TYPICAL_SEEN_NS 40

enum {
	BATCHES = 32,
	EVENTS = 40,     /* of a batch */
	LOOPS = 12,
	TICK_NS = 50000, /* of the clock that is measured: far more often than when recording, to be seen at all */
	TURNS = 200000,  /* of the loop that it interrupts: some 250 us */
	PAGE = 4096,
};

/* Used where nothing is measured: what was seen where this was written, a virtual machine, in which a timer's interrupt
 * leaves the guest (docs/decisions/0020-budget.md). */
static const double typical_ns[SURCHARGE_WAYS] = {
	[SURCHARGE_TRACEPOINT] = 60, [SURCHARGE_CALL] = 40, [SURCHARGE_CLOCK] = 13500, [SURCHARGE_FAULT] = 60,
	[SURCHARGE_UPROBE] = 850,
};
/* A measurement on a busy machine can come out as anything; what it can be is known. */
static const struct {
	double least, most;
} plausible_ns[SURCHARGE_WAYS] = {
	[SURCHARGE_TRACEPOINT] = { 20, 400 }, [SURCHARGE_CALL] = { 20, 600 }, [SURCHARGE_CLOCK] = { 300, 45000 },
	[SURCHARGE_FAULT] = { 30, 1500 },
};

const char *const surcharge_names[SURCHARGE_WAYS] = {
	"none", "tracepoint", "call", "clock", "fault", "uprobe",
};

static const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };

enum surcharge_way surcharge_way_of(const char *section, const char *program)
{
	if (!strncmp(section, "iter", 4))
		return SURCHARGE_NONE;
	if (!strncmp(section, "uprobe", 6))
		return SURCHARGE_UPROBE;
	if (!strcmp(section, "perf_event")) /* of an interrupt, or of software, as faults are */
		return strstr(program, "clock") || strstr(program, "hw") ? SURCHARGE_CLOCK : SURCHARGE_FAULT;
	return strstr(section, "/sys_enter") || strstr(section, "/sys_exit") ? SURCHARGE_CALL : SURCHARGE_TRACEPOINT;
}

/* --- what is timed: ns of one event, in the quickest batch, which is the one that was not interrupted --- */

static double signal_ns(void)
{
	uint64_t best = UINT64_MAX;
	pid_t pid = getpid(), tid = syscall(SYS_gettid);

	for (int i = 0; i < BATCHES; i++) {
		uint64_t began = clock_mono_ns();

		for (int k = 0; k < EVENTS; k++)
			syscall(SYS_tgkill, pid, tid, SIGURG); /* is ignored */
		best = MIN(best, clock_mono_ns() - began);
	}
	return (double)best / EVENTS;
}

static double call_ns(void)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++) {
		uint64_t began = clock_mono_ns();

		for (int k = 0; k < EVENTS; k++)
			syscall(SYS_getppid);
		best = MIN(best, clock_mono_ns() - began);
	}
	return (double)best / EVENTS;
}

static double fault_ns(char *memory)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < BATCHES; i++) {
		uint64_t began;

		madvise(memory, EVENTS * PAGE, MADV_DONTNEED);
		began = clock_mono_ns();
		for (int k = 0; k < EVENTS; k++)
			((volatile char *)memory)[k * PAGE] = 1;
		best = MIN(best, clock_mono_ns() - began);
	}
	return (double)best / EVENTS;
}

static int compare_ns(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* A loop without events. Of the batches the one of this rank: 0 is the quickest. */
static uint64_t loop_ns(unsigned rank)
{
	uint64_t took[LOOPS], state = 88172645463325252ULL;

	for (int i = 0; i < LOOPS; i++) {
		uint64_t began = clock_mono_ns();

		for (int k = 0; k < TURNS; k++) {
			state ^= state << 13;
			state ^= state >> 7;
			__asm__ volatile("" : "+r"(state));
		}
		took[i] = clock_mono_ns() - began;
	}
	qsort(took, LOOPS, sizeof(*took), compare_ns);
	return took[rank];
}

/* --- the difference that a program makes that does nothing, less what the statistics show of it; negative: not known --- */

/* What they show of it; 0: there are none. */
static double seen_ns(int program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size) || !info.run_cnt)
		return 0;
	return (double)info.run_time_ns / info.run_cnt;
}

static int load_empty(enum bpf_prog_type type)
{
	return bpf_prog_load(type, "gasflame_empty", "Dual BSD/GPL", nothing, ARRAY_LEN(nothing), NULL);
}

/* An event of our own thread that runs the program, not enabled yet; -1: the kernel does not want it. */
static int open_event(uint64_t config, uint64_t period, int program)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .config = config, .sample_period = period, .disabled = 1 };
	int fd = program < 0 ? -1 : ring_perf_open(&attr, 0, -1, -1, 0);

	if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_BPF, program))
		fd_close(&fd);
	return fd < 0 ? -1 : fd;
}

static double measure_tracepoint(struct surcharge *s)
{
	_cleanup_fd_ int program = load_empty(BPF_PROG_TYPE_RAW_TRACEPOINT);
	double without = signal_ns(), with;
	_cleanup_fd_ int link = program < 0 ? -1 : bpf_raw_tracepoint_open("signal_generate", program);

	if (link < 0)
		return -1;
	with = signal_ns();
	s->seen_ns = seen_ns(program);
	return with - without - s->seen_ns;
}

/* Our programs are attached, both of them, and pass over a call that is of no interest: they are nearly empty. */
static double measure_call(const struct surcharge *s)
{
	return s->call_ns > 0 ? (call_ns() - s->call_ns) / 2 - s->seen_ns : -1;
}

static double measure_clock(void)
{
	_cleanup_fd_ int program = load_empty(BPF_PROG_TYPE_PERF_EVENT);
	_cleanup_fd_ int event = open_event(PERF_COUNT_SW_CPU_CLOCK, TICK_NS, program);
	uint64_t without, with;

	if (event < 0)
		return -1;
	without = loop_ns(0);
	ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
	with = loop_ns(LOOPS / 4); /* the quickest may have had a tick less than the others */
	ioctl(event, PERF_EVENT_IOC_DISABLE, 0);
	return with > without ? (double)(with - without) * TICK_NS / with - seen_ns(program) : -1;
}

static double measure_fault(void)
{
	_cleanup_fd_ int program = load_empty(BPF_PROG_TYPE_PERF_EVENT);
	_cleanup_fd_ int event = open_event(PERF_COUNT_SW_PAGE_FAULTS_MIN, 1, program);
	char *memory = mmap(NULL, EVENTS * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double without, with;

	if (memory == MAP_FAILED)
		return -1;
	madvise(memory, EVENTS * PAGE, MADV_NOHUGEPAGE);
	without = fault_ns(memory);
	ioctl(event, PERF_EVENT_IOC_ENABLE, 0);
	with = event < 0 ? 0 : fault_ns(memory);
	munmap(memory, EVENTS * PAGE);
	return event < 0 ? -1 : with - without - seen_ns(program);
}

static void take(struct surcharge *s, enum surcharge_way way, double ns)
{
	if (ns < 0)
		return;
	s->ns[way] = MIN(MAX(ns, plausible_ns[way].least), plausible_ns[way].most);
	s->measured[way] = true;
	log_debug("a run of a BPF program of a %s costs %.0f ns more than is counted", surcharge_names[way], s->ns[way]);
}

void surcharge_begin(struct surcharge *s)
{
	memcpy(s->ns, typical_ns, sizeof(s->ns));
	s->seen_ns = TYPICAL_SEEN_NS;
	s->call_ns = call_ns();
}

void surcharge_measure(struct surcharge *s, const bool *wanted)
{
	take(s, SURCHARGE_TRACEPOINT, measure_tracepoint(s));
	if (wanted[SURCHARGE_CALL])
		take(s, SURCHARGE_CALL, measure_call(s));
	if (wanted[SURCHARGE_CLOCK])
		take(s, SURCHARGE_CLOCK, measure_clock());
	if (wanted[SURCHARGE_FAULT])
		take(s, SURCHARGE_FAULT, measure_fault());
}
