#include "collect/budget/surcharge.h"

#include <bpf/bpf.h>
#include <linux/bpf.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file/fd.h"
#include "base/log.h"
#include "base/mem.h"

enum { BATCHES = 12, CALLS = 40 };

/*
 * Used where nothing is measured. That of a tracepoint is what was seen where this was written. The others are assumptions
 * of the right size, not measurements: a tick of a clock is an interrupt, a fault has its event besides the program, and a
 * uprobe is a trap.
 */
static const double typical_ns[SURCHARGE_WAYS] = {
	[SURCHARGE_TRACEPOINT] = 60, [SURCHARGE_CLOCK] = 1000, [SURCHARGE_FAULT] = 150, [SURCHARGE_UPROBE] = 1200,
};

enum surcharge_way surcharge_way_of(const char *section, const char *program)
{
	if (!strncmp(section, "iter", 4))
		return SURCHARGE_NONE;
	if (!strncmp(section, "uprobe", 6))
		return SURCHARGE_UPROBE;
	if (!strcmp(section, "perf_event"))
		return strstr(program, "fault") ? SURCHARGE_FAULT : SURCHARGE_CLOCK;
	return SURCHARGE_TRACEPOINT;
}

/* Passes the tracepoint signal_generate and does nothing else: the signal is ignored. The quickest of some batches is
 * the one that was not interrupted. */
static double signal_ns(void)
{
	uint64_t best = UINT64_MAX;
	pid_t pid = getpid(), tid = syscall(SYS_gettid);

	for (int i = 0; i < BATCHES; i++) {
		uint64_t began = clock_mono_ns();

		for (int k = 0; k < CALLS; k++)
			syscall(SYS_tgkill, pid, tid, SIGURG);
		best = MIN(best, clock_mono_ns() - began);
	}
	return (double)best / CALLS;
}

/* The time of our own program as the statistics show it; 0: they do not. */
static double seen_ns(int program)
{
	struct bpf_prog_info info = { 0 };
	uint32_t size = sizeof(info);

	if (bpf_obj_get_info_by_fd(program, &info, &size) || !info.run_cnt)
		return 0;
	return (double)info.run_time_ns / info.run_cnt;
}

/* The difference that a program makes that does nothing, less what is seen of it; negative: not to be had. */
static double tracepoint_ns(void)
{
	const struct bpf_insn nothing[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K }, { .code = BPF_JMP | BPF_EXIT } };
	_cleanup_fd_ int program = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "gasflame_empty", "Dual BSD/GPL", nothing,
						 ARRAY_LEN(nothing), NULL);
	double without = signal_ns(), with;
	_cleanup_fd_ int link = program < 0 ? -1 : bpf_raw_tracepoint_open("signal_generate", program);

	if (link < 0)
		return -1;
	with = signal_ns();
	return with - without - seen_ns(program);
}

void surcharge_measure(struct surcharge *s)
{
	double ns;

	memcpy(s->ns, typical_ns, sizeof(s->ns));
	ns = tracepoint_ns();
	/* On a busy machine it can come out as anything; what it can be is known. */
	if (ns >= 0)
		s->ns[SURCHARGE_TRACEPOINT] = MIN(MAX(ns, 20), 300);
	log_debug("a run of a BPF program costs %.0f ns more than is counted", s->ns[SURCHARGE_TRACEPOINT]);
}
