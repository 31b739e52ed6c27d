/* machinearm64.c - registers of arm64 (machine.h). */
#include "collect/inject/machine.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "base/mem.h"

#ifndef NT_ARM_SVE
#define NT_ARM_SVE 0x405
#endif
#ifndef NT_ARM_SSVE
#define NT_ARM_SSVE 0x40b
#endif

enum { NUMBER = 8 /* x8 */, TRIES = 3 };

/* Of the processor's state: it runs 32-bit code; an indirect branch has just been taken, so that a landing pad must follow (BTI). */
#define MODE_32_BIT 0x10ULL
#define BRANCHED    0xc00ULL

const struct instructions *const machine_instructions = &instructions_arm64;

/* Of a 32-bit program the kernel gives another, shorter set, which fits into the beginning, and takes it back from there. */
int machine_get(pid_t tid, struct user_regs_struct *ret)
{
	struct iovec v = { ret, sizeof(*ret) };

	*ret = (struct user_regs_struct){ 0 };
	if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &v) < 0)
		return -errno;
	if (v.iov_len != sizeof(*ret))
		ret->pstate = MODE_32_BIT;
	return 0;
}

int machine_set(pid_t tid, const struct user_regs_struct *regs)
{
	struct iovec v = { (void *)regs, sizeof(*regs) };

	return ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &v) < 0 ? -errno : 0;
}

bool machine_is_64_bit(const struct user_regs_struct *regs)
{
	return !(regs->pstate & MODE_32_BIT);
}

bool machine_is_empty(const struct user_regs_struct *regs)
{
	for (int i = 0; i < 31; i++)
		if (regs->regs[i])
			return false;
	return true;
}

uint64_t machine_pc(const struct user_regs_struct *regs)
{
	return regs->pc;
}

void machine_set_pc(struct user_regs_struct *regs, uint64_t pc)
{
	regs->pc = pc;
}

int64_t machine_result(const struct user_regs_struct *regs)
{
	return regs->regs[0];
}

/* The kernel begins a call anew only where the program counter is still the one that it has set. */
void machine_set_call(struct user_regs_struct *regs, uint64_t at, long number, const uint64_t arguments[6])
{
	for (int i = 0; i < 6; i++)
		regs->regs[i] = arguments[i];
	regs->regs[NUMBER] = number;
	regs->pc = at;
	regs->pstate &= ~BRANCHED;
}

void machine_set_code(struct user_regs_struct *regs, uint64_t at, const uint64_t arguments[4])
{
	for (int i = 0; i < 4; i++)
		regs->regs[i] = arguments[i];
	regs->pc = at;
	regs->pstate &= ~BRANCHED;
}

/* A step over a system call is reported as a signal that nobody sent. */
bool machine_is_trap(const siginfo_t *info)
{
	return info->si_code == TRAP_BRKPT || info->si_code == TRAP_TRACE || info->si_code == SI_KERNEL ||
	       (info->si_code == SI_USER && !info->si_pid);
}

bool machine_hides_call(const struct user_regs_struct *regs, uint64_t code)
{
	return instructions_is_call(machine_instructions, code);
}

/* restart_syscall, or the call itself. */
void machine_take_call(struct user_regs_struct *regs, const struct user_regs_struct *at_call)
{
	regs->regs[NUMBER] = at_call->regs[NUMBER];
}

/* --- vectors --- */

/* As the kernel has it, for both kinds: struct user_sve_header. */
struct header {
	uint32_t size, max_size;
	uint16_t length, max_length, flags, reserved;
};
enum { HAS_VECTORS = 1 /* SVE_PT_REGS_SVE; else the registers of every processor, which calls keep */, MOST = 1 << 20 };

struct machine_vectors {
	size_t size;
	unsigned char data[];
};

static bool has_vectors(pid_t tid, int kind, struct header *ret)
{
	struct iovec v = { ret, sizeof(*ret) };

	*ret = (struct header){ 0 };
	return ptrace(PTRACE_GETREGSET, tid, kind, &v) >= 0 && v.iov_len == sizeof(*ret) && ret->flags & HAS_VECTORS;
}

int machine_save(pid_t tid, struct machine_vectors **ret)
{
	struct header h;
	struct iovec v;

	*ret = NULL;
	/* Streaming mode ends with each call, and what it has with it. */
	if (has_vectors(tid, NT_ARM_SSVE, &h))
		return -EAGAIN;
	if (!has_vectors(tid, NT_ARM_SVE, &h))
		return 0;
	if (h.size < sizeof(h) || h.size > MOST)
		return -EIO;
	*ret = mem_alloc(sizeof(**ret) + h.size);
	v = (struct iovec){ (*ret)->data, h.size };
	if (ptrace(PTRACE_GETREGSET, tid, NT_ARM_SVE, &v) < 0 || v.iov_len != h.size) {
		free(*ret);
		*ret = NULL;
		return -EIO;
	}
	(*ret)->size = h.size;
	return 0;
}

void machine_restore(pid_t tid, struct machine_vectors *v)
{
	for (int k = 0; v && k < TRIES; k++) {
		struct iovec all = { v->data, v->size };

		if (ptrace(PTRACE_SETREGSET, tid, NT_ARM_SVE, &all) >= 0)
			break;
	}
	free(v);
}
