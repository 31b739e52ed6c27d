/*
 * kernelmap.h - frames of the kernel, as profiles have them: relative to where the kernel or its module begins.
 *
 * Code that has no such place (BPF programs, trampolines) is in a module of its own, "[kernel jit]", relative to a
 * number that is drawn for each recording and known to this process only. Code of our own BPF programs is in the module
 * "[gasflame]", by name and without an address.
 */
#pragma once

#include <stdint.h>

struct kallsyms;
struct kernelmap;
struct profile;

/* Adds the module "[kernel]" to p, and tells p where it and the others lie (profile_kernel_base). */
struct kernelmap *kernelmap_new(struct profile *p);
void kernelmap_free(struct kernelmap *k); /* NULL is fine */
/* The frame of an address, interned. */
uint32_t kernelmap_frame(struct kernelmap *k, uint64_t address);

/* Says that a function of our own programs lies there. name is copied. */
void kernelmap_add_own(struct kernelmap *k, uint64_t start, uint64_t bytes, const char *name);
/* A program at a tracepoint that takes a stack finds itself on it, and the tracing that called it. Returns how many of the
 * first frames (leaf first, as the kernel gives them) these are. */
uint32_t kernelmap_own_frames(struct kernelmap *k, const uint64_t *frames, uint32_t count);
/* What the name of a kernel frame's function says, in bits of enum kernelname. */
uint8_t kernelmap_class(struct kernelmap *k, uint32_t frame);
/* The kernel's symbols, if they were read: the caller frees them. Afterwards no stack and no class can be asked for. */
struct kallsyms *kernelmap_take_symbols(struct kernelmap *k);
