/* machinex86.c - registers of x86-64 (machine.h). */
#include "collect/inject/machine.h"

#include <errno.h>
#include <stddef.h>
#include <sys/ptrace.h>

const struct instructions *const machine_instructions = &instructions_x86;

int machine_get(pid_t tid, struct user_regs_struct *ret)
{
	return ptrace(PTRACE_GETREGS, tid, 0, ret) < 0 ? -errno : 0;
}

int machine_set(pid_t tid, const struct user_regs_struct *regs)
{
	return ptrace(PTRACE_SETREGS, tid, 0, regs) < 0 ? -errno : 0;
}

bool machine_is_64_bit(const struct user_regs_struct *regs)
{
	return regs->cs == 0x33;
}

bool machine_is_empty(const struct user_regs_struct *g)
{
	return !(g->rdi | g->rsi | g->rdx | g->rbx | g->rbp | g->r8 | g->r9 | g->r12 | g->r15);
}

uint64_t machine_pc(const struct user_regs_struct *regs)
{
	return regs->rip;
}

void machine_set_pc(struct user_regs_struct *regs, uint64_t pc)
{
	regs->rip = pc;
}

int64_t machine_result(const struct user_regs_struct *regs)
{
	return regs->rax;
}

void machine_set_call(struct user_regs_struct *regs, uint64_t at, long number, const uint64_t arguments[6])
{
	regs->rip = at;
	regs->rax = number;
	regs->rdi = arguments[0];
	regs->rsi = arguments[1];
	regs->rdx = arguments[2];
	regs->r10 = arguments[3];
	regs->r8 = arguments[4];
	regs->r9 = arguments[5];
	regs->orig_rax = -1;
}

void machine_set_code(struct user_regs_struct *regs, uint64_t at, const uint64_t arguments[4])
{
	regs->rip = at;
	regs->rdi = arguments[0];
	regs->rsi = arguments[1];
	regs->rdx = arguments[2];
	regs->rcx = arguments[3];
	regs->orig_rax = -1;
}

bool machine_is_trap(const siginfo_t *info)
{
	return info->si_code == TRAP_BRKPT || info->si_code == TRAP_TRACE || info->si_code == SI_KERNEL;
}

/* The registers say it all: the kernel looks at them when the thread goes on. */
bool machine_hides_call(const struct user_regs_struct *regs, uint64_t code)
{
	return false;
}

void machine_take_call(struct user_regs_struct *regs, const struct user_regs_struct *at_call)
{
}

/* System calls keep all vector registers. */
int machine_save(pid_t tid, struct machine_vectors **ret)
{
	*ret = NULL;
	return 0;
}

void machine_restore(pid_t tid, struct machine_vectors *v)
{
}
