/*
 * machine.h - what each processor has its own way of, where a stopped thread of a process is made to do something: its registers, and how
 * it begins a system call anew. machinex86.c and machinearm64.c; the build takes one of them.
 *
 * All of it is for a thread that is stopped and traced by the caller. Functions return a negative errno.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "collect/inject/instructions.h"

extern const struct instructions *const machine_instructions;

int machine_get(pid_t tid, struct user_regs_struct *ret);
int machine_set(pid_t tid, const struct user_regs_struct *regs);

bool machine_is_64_bit(const struct user_regs_struct *regs);
/* As the kernel begins a program. */
bool machine_is_empty(const struct user_regs_struct *regs);
uint64_t machine_pc(const struct user_regs_struct *regs);
void machine_set_pc(struct user_regs_struct *regs, uint64_t pc);
/* Of a system call, or of code that ends with a trap. */
int64_t machine_result(const struct user_regs_struct *regs);
/* From regs on: a system call by the instruction at an address; code with up to four arguments. No call is begun anew then. */
void machine_set_call(struct user_regs_struct *regs, uint64_t at, long number, const uint64_t arguments[6]);
void machine_set_code(struct user_regs_struct *regs, uint64_t at, const uint64_t arguments[4]);
/* Is it the trap of an instruction, of a step, or of a system call that was stepped over? Else somebody sent SIGTRAP. */
bool machine_is_trap(const siginfo_t *info);

/*
 * Where the kernel has changed the registers of a call that it begins anew before we see them (arm64), it keeps to itself whether
 * that is to go on with the time that was left: only the thread's next step shows it. So such a thread is let go to the beginning of
 * its call (PTRACE_SYSEMU), which is not made; machine_take_call() then takes over what it would have called. False: nothing is to be done.
 */
bool machine_hides_call(const struct user_regs_struct *regs, uint64_t code);
void machine_take_call(struct user_regs_struct *regs, const struct user_regs_struct *at_call);

/*
 * State that a system call destroys although none was made there: vector registers beyond those of every processor (arm64: SVE). NULL and 0:
 * there is none. -EAGAIN: the thread is in a mode that cannot be put back. machine_restore() frees it.
 */
struct machine_vectors;
int machine_save(pid_t tid, struct machine_vectors **ret);
void machine_restore(pid_t tid, struct machine_vectors *v);
