/*
 * kernelplaces.h - the addresses of the running kernel and its modules, so that samples can be stored
 * relative to them.
 *
 * An absolute kernel address in a capture would reveal the KASLR offset to its readers. So a capture has the
 * offset from the start of the kernel's own code, or from the start of the module: one base for both would
 * reveal either.
 */
#pragma once

#include <stdint.h>

#include "base/vec.h"

struct kernelplace {
	uint64_t start, end;
	char name[64]; /* "[kernel]", "[ext4]": as module names are in profiles */
};

struct kernelplaces {
	VEC(struct kernelplace) list;
};

/* Reads what is visible: nothing where the kernel hides its addresses (kernel.kptr_restrict). */
void kernelplaces_read(struct kernelplaces *k);
void kernelplaces_read_modules(struct kernelplaces *k); /* without the kernel itself, which takes longer */
/* Reads the modules anew. The kernel itself stays where it is; and where the kernel hides addresses by now, since rights were
 * dropped, all stays as it was. */
void kernelplaces_look_again(struct kernelplaces *k);
void kernelplaces_done(struct kernelplaces *k);
/* Of the texts of /proc/kallsyms (its beginning is enough), /proc/iomem and /proc/modules; each may be NULL. Pure. */
void kernelplaces_parse(struct kernelplaces *k, const char *kallsyms, const char *iomem, const char *modules);

/* NULL: code that was made at run time, as of BPF programs, or not known. */
const struct kernelplace *kernelplaces_find(const struct kernelplaces *k, uint64_t address);
const struct kernelplace *kernelplaces_named(const struct kernelplaces *k, const char *name);
