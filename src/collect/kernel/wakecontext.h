/*
 * wakecontext.h - was it a thread that woke another one, or an interrupt that happened to come while it ran?
 *
 * By the kernel's functions on the waker's stack, which every kernel has, and not by its count of nested interrupts, which
 * has moved from kernel to kernel.
 */
#pragma once

#include <stdint.h>

#include "base/map.h"
#include "profile/kernelname.h"

struct kernelmap;
struct profile;

struct wakecontext {
	struct profile *profile;
	struct kernelmap *kernel;
	struct map known; /* stack of a waker to what was found, and the stack to show */
};

void wakecontext_done(struct wakecontext *w);
/* *stack: the waker's, of the profile. Where an interrupt is found, the interrupted code is taken off it. INTERRUPT_NONE also
 * for the threads that serve interrupts: they have names of their own. */
enum kernel_interrupt wakecontext_of(struct wakecontext *w, uint32_t *stack);
