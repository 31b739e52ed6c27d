/*
 * kernelclass.h - the kernel's functions by address, as far as their names say anything (profile/kernelname.h).
 *
 * The list of all symbols takes some 50 ms to read: it is read when the first address is asked for, and what is kept of it are
 * the few thousand functions that matter. Modules that are loaded later are not known.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct kernelclass {
	/* From this address on names say this. Sorted, no two neighbours alike. */
	VEC(struct kernelclass_from {
		uint64_t address;
		uint8_t names; /* enum kernelname */
	}) list;
	int read;
};

/* Of a text like /proc/kallsyms. Pure. */
void kernelclass_parse(struct kernelclass *k, const char *kallsyms);
void kernelclass_done(struct kernelclass *k);
/* The bits of enum kernelname; 0 also where the kernel hides its addresses. */
uint8_t kernelclass_of(struct kernelclass *k, uint64_t address);
