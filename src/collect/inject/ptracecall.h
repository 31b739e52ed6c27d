/*
 * ptracecall.h - one thread of another process, stopped for a moment to make system calls for us.
 *
 *	struct ptracecall r;
 *	e = ptracecall_stop(&r, pid, &err);
 *	int64_t fd = ptracecall_call(&r, SYS_memfd_create, address, 0, 0, 0, 0, 0);
 *	ptracecall_go(&r);
 *
 * Of the thread only the general registers and the mask of signals are changed (and what a system call does not keep: machine.h),
 * and all of it is put back; a system call that it was blocked in goes on. (Few return EINTR when their thread is
 * stopped, epoll_wait among them: a thread that waits elsewhere is preferred.) Whatever
 * fails, ptracecall_go() must be called after ptracecall_stop() succeeded. If gasflame dies between them, the
 * kernel lets the thread go where it stands: within our system call's instruction, whose
 * registers nobody puts back. So what is between them must be short and must not be able to fail halfway:
 * signals are held off meanwhile.
 */
#pragma once

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct err;
struct machine_vectors;

struct ptracecall {
	pid_t pid, tid;
	struct user_regs_struct saved;
	struct machine_vectors *vectors; /* likewise, where system calls do not keep them (machine.h) */
	uint64_t mask;       /* of its signals */
	uint64_t syscall_at; /* address of a syscall instruction in the target */
	sigset_t own;        /* our own mask before */
	uint64_t began_ns;
	int ended;           /* the thread is no more */
	int child;           /* we have started it: how it ended is left for whoever waits for it */
	uint64_t signals;    /* that came meanwhile and are still to be delivered: a bit for each */
};

int ptracecall_stop(struct ptracecall *r, pid_t pid, struct err *err);
/* For a child of ours that is about to execute a program: from now on we are told. */
int ptracecall_expect(pid_t pid, struct err *err);
/* Waits until it has, and its libraries are loaded: stops it before the program's own first instruction. */
int ptracecall_at_entry(struct ptracecall *r, pid_t pid, struct err *err);
/* The same for a child of ours that a SIGSTOP keeps from beginning with the program that it has executed. It goes on in any
 * case. -EAGAIN: it has begun already. */
int ptracecall_at_entry_stopped(struct ptracecall *r, pid_t pid, struct err *err);
/* Returns the result of the system call, or -ESRCH when the thread was killed meanwhile. */
int64_t ptracecall_call(struct ptracecall *r, long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
			uint64_t f);
/* Lets it run from an address on, with these arguments, to a trap. Its result then, or -ESRCH. */
int64_t ptracecall_run(struct ptracecall *r, uint64_t address, uint64_t a, uint64_t b, uint64_t c, uint64_t d);
/* Returns for how long it was stopped. */
uint64_t ptracecall_go(struct ptracecall *r);
