/*
 * kernelmap.h - frames of the kernel, as profiles have them: relative to where the kernel or its module begins.
 *
 * Code that has no such place (BPF programs, trampolines) is in a module of its own, "[kernel jit]", relative to a
 * number that is drawn for each recording and known to this process only.
 */
#pragma once

#include <stdint.h>

struct kernelmap;
struct profile;

/* Adds the module "[kernel]" to p, and tells p where it and the others lie (profile_kernel_base). */
struct kernelmap *kernelmap_new(struct profile *p);
void kernelmap_free(struct kernelmap *k); /* NULL is fine */
/* The frame of an address, interned. */
uint32_t kernelmap_frame(struct kernelmap *k, uint64_t address);
