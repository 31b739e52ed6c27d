/*
 * kernelplaces.h - where the running kernel and its modules lie, so that addresses can be kept relative to them.
 *
 * An address of the kernel gives away where KASLR put it, to whoever reads a
 * capture. What is kept instead is the distance from where the kernel's own code
 * begins, or from where its module does: one distance across both would give
 * away either.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

struct kernelplace {
	uint64_t start, end;
	char name[64]; /* "[kernel]", "[ext4]": as module names are in profiles */
};

struct kernelplaces {
	VEC(struct kernelplace) list;
};

/* What can be seen: nothing where the kernel hides its addresses (kernel.kptr_restrict). */
void kernelplaces_read(struct kernelplaces *k);
void kernelplaces_done(struct kernelplaces *k);
/* Of the texts of /proc/kallsyms (its beginning is enough), /proc/iomem and /proc/modules; each may be NULL. Pure. */
void kernelplaces_parse(struct kernelplaces *k, const char *kallsyms, const char *iomem, const char *modules);

/* NULL: code that was made at run time, as of BPF programs, or not known. */
const struct kernelplace *kernelplaces_find(const struct kernelplaces *k, uint64_t address);
const struct kernelplace *kernelplaces_named(const struct kernelplaces *k, const char *name);
