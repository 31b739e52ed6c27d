/*
 * kernelname.h - kernel functions by name, as the recorder and the analyses both judge them.
 *
 * Names differ between kernels (5.15 to 7.x are known here) and compilers add ".isra.0" and the like, so they are matched by
 * prefix, in a table. Everything here is a function of names alone. The recorder asks once for each symbol of the kernel
 * (collect/kernel/kernelclass.h) and keeps the answer; an analysis of an older capture asks for the names in it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* What a function's name says, in bits. */
enum kernelname {
	KERNELNAME_TRACING = 1 << 0, /* it lies between a tracepoint and the BPF program that is attached to it */
	KERNELNAME_ENTRY = 1 << 1,   /* it enters an interrupt: frames further out belong to the interrupted code */
	KERNELNAME_SOFTIRQ = 1 << 2, /* it runs softirqs, wherever it is called from */
	KERNELNAME_THREAD = 1 << 3,  /* it is the main loop of a thread that serves interrupts: ksoftirqd, irq/24-nvme0q1 */
	KERNELNAME_SENDS = 1 << 4,   /* it sends a packet, and may receive it at once where it goes to the same machine */
	KERNELNAME_TIMER = 1 << 5,
	KERNELNAME_DISK = 1 << 6,
	KERNELNAME_NETWORK = 1 << 7,
};
uint8_t kernelname_of(const char *name);

/* The interrupt that ends a wait when no task does. */
enum kernel_interrupt {
	INTERRUPT_NONE, /* the task that ran woke it */
	INTERRUPT_TIMER,
	INTERRUPT_DISK,
	INTERRUPT_NETWORK,
	INTERRUPT_OTHER,
};
/* Returns the name of a waker that is an interrupt. It is longer than a thread's name can be. */
const char *kernel_interrupt_waker(enum kernel_interrupt i);
bool kernel_interrupt_is_waker(const char *name);

/*
 * The waker's kernel functions, innermost first, are fed one by one:
 *
 *	struct interrupt_reader r = { 0 };
 *	while (more) interrupt_read(&r, kernelname_of(name));
 *	enum kernel_interrupt i = interrupt_of(&r);
 */
struct interrupt_reader {
	bool entered;  /* an interrupt's entry is on the stack: what follows says nothing */
	bool thread;   /* what entered it is a thread that serves interrupts */
	bool softirq;  /* softirqs run, and no entry was seen yet */
	bool sends;    /* further out the task sends a packet */
	enum kernel_interrupt kind; /* by the innermost function that tells */
};
void interrupt_read(struct interrupt_reader *r, uint8_t kernelname);
enum kernel_interrupt interrupt_of(const struct interrupt_reader *r);
