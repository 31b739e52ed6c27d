/*
 * stepping.bpf.h - a thread that runs the copy of an instruction for a probe. A part of unwind.bpf.c.
 *
 * Where a probe (a uprobe of anybody's) is on an instruction that the kernel does not emulate, as a return on x86-64 or most instructions on arm64,
 * the kernel runs a copy of it in the mapping [uprobes], one instruction a time. A sample or a switch in there has an address of the copy.
 */
#pragma once

#include "collect/unwind/unwind.bpf.h"

enum { STEPPING_BYTES = 128 }; /* the kernel's room for a copy, at most */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct uprobe_task___stepping {
	unsigned long vaddr, xol_vaddr; /* of the instruction, and of its copy */
};

struct task_struct___stepping {
	struct uprobe_task___stepping *utask;
};

#pragma clang attribute pop

/* Puts the instruction's own address in place of its copy's, if that is where the current task is. */
__attribute__((noinline)) int unwind_stepping(struct unwind *u)
{
	struct task_struct___stepping *task = (void *)bpf_get_current_task();
	struct uprobe_task___stepping *step;
	uint64_t copy;

	if (!u || !bpf_core_field_exists(task->utask))
		return 0;
	step = BPF_CORE_READ(task, utask);
	copy = step ? BPF_CORE_READ(step, xol_vaddr) : 0;
	if (!copy || u->pc - copy >= STEPPING_BYTES)
		return 0;
	u->pc = BPF_CORE_READ(step, vaddr) + (u->pc - copy);
	return 1;
}
