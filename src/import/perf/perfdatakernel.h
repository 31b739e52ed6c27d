/*
 * perfdatakernel.h - names of the recorded kernel, from the list of its symbols that perf keeps in ~/.debug.
 *
 * perf makes that copy when it has recorded, by the kernel's build-id. The kernel may lie elsewhere since: only distances from
 * its beginning count, and modules, which lie anywhere, have no names here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;
struct perfdatafacts;
struct profile;

struct perfdatakernel {
	bool tried;
	struct kallsyms *list; /* NULL: there is none */
	uint64_t start;        /* of the kernel, in the list */
};

void perfdatakernel_done(struct perfdatakernel *k);
/* Names a frame by its distance from where the kernel begins. False: it is not known. */
bool perfdatakernel_name(struct perfdatakernel *k, const struct perfdatafacts *facts, struct profile *p, uint32_t frame);
