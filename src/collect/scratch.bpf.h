/*
 * scratch.bpf.h - what a program needs that others of its kind may preempt.
 *
 * Programs at uprobes run with preemption on: a thread may be preempted in the middle of one, and the next thread on that
 * CPU may run into the same probe. Since Linux 7.0 this holds for programs at raw tracepoints, too, although the kernel
 * skips a program that is preempted by itself (and counts that: bpfengine_missed()). Whatever lies there once for each CPU
 * is another's by then. Two things do:
 *
 * 1. Room for a stack: there are SCRATCHES for each CPU, taken and given back. Who finds none counts a loss.
 * 2. The program's own stack: from Linux 6.13 on the kernel gives programs with 64 bytes of it or more a private one for
 *    each CPU, and nothing keeps two programs at uprobes off the same one: spilled pointers are overwritten, and the kernel
 *    dies. A program that may call another (a tail call) gets none, in any version: such programs share the stack of the
 *    task. PROBE_USE_TASK_STACK is a call of this kind that is never made (docs/decisions/0013).
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum { SCRATCHES = 4 };

struct scratch {
	uint64_t busy;
	struct unwind u;
};

#define SCRATCH_MAP(name)                                   \
	BPF_MAP(name, PERCPU_ARRAY, SCRATCHES, uint32_t, struct scratch)

/* NULL: all of this CPU's are taken. To be given back by scratch_give() before the program ends. */
static __always_inline struct scratch *scratch_take(void *map)
{
	for (uint32_t i = 0; i < SCRATCHES; i++) {
		uint32_t key = i;
		struct scratch *s = bpf_map_lookup_elem(map, &key);

		if (s && !__sync_lock_test_and_set(&s->busy, 1))
			return s;
	}
	return NULL;
}

static __always_inline void scratch_give(struct scratch *s)
{
	__sync_lock_test_and_set(&s->busy, 0);
}

/* Counts of a CPU that programs which preempt each other share: a plain ++ would lose some. */
#define SCRATCH_COUNT(counter) __sync_fetch_and_add(&(counter), 1)

/* Each file with programs at uprobes has one: a map of programs takes only one kind of program. */
#define PROBE_NO_PROGRAMS(name)                             \
	BPF_MAP(name, PROG_ARRAY, 1, uint32_t, uint32_t)

/* In each program at a uprobe. Who runs in user space has a pid, which the verifier does not know. */
#define PROBE_USE_TASK_STACK(ctx, no_programs)              \
	do {                                                \
		if (!bpf_get_current_pid_tgid())            \
			bpf_tail_call(ctx, &(no_programs), 0); \
	} while (0)
