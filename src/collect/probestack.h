/*
 * probestack.h - may our programs run at uprobes on this kernel?
 *
 * Programs at uprobes can be preempted by themselves. Kernels from 6.13 on may give a program a private stack for each CPU,
 * on which that ends in a crash of the kernel (docs/decisions/0013). Ours are written so that they get none (scratch.bpf.h); here
 * it is looked at, in the machine code that the kernel made of them, before the first one is attached.
 */
#pragma once

#include <stdbool.h>

struct bpf_program;
struct err;

enum probestack_seen { PROBESTACK_UNSEEN, PROBESTACK_OF_TASK, PROBESTACK_PRIVATE };

/* Facts about a kernel. */
struct probestack_facts {
	int major, minor;
	bool jit;                     /* programs are compiled; the interpreter has no private stacks */
	enum probestack_seen ours;    /* what the code of the program at hand uses; UNSEEN: it is not shown to us */
	enum probestack_seen control; /* and that of one which gets a private stack wherever there are any */
};

/* Returns which stack the machine code of a loaded program uses. */
enum probestack_seen probestack_look(int program_fd);
/* Loads a program of the kind that gets a private stack; with a tail call in it it should not. Its descriptor, or a negative
 * errno. */
int probestack_control(bool tail_call);
/* Is it known that the program is safe? 0, or -ENOTSUP with the reason. A function of its arguments. */
int probestack_judge(const struct probestack_facts *f, struct err *err);

/* All of it, for a program that is loaded. */
int probestack_check(const struct bpf_program *program, struct err *err);
/* The same for a program that is made like ours, where none is loaded: for doctor. -EPERM and the like: it could not be tried. */
int probestack_check_kernel(struct err *err);
