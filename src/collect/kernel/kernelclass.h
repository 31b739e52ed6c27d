/*
 * kernelclass.h - the kernel's functions by address, as far as their names say anything (profile/kernelname.h).
 *
 * The list of all symbols takes long to read (target/kallsyms.h): it is read when the first address is asked for. A name is
 * looked at when the first address in its function is asked for. Modules that are loaded later are not known.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct kallsyms;

struct kernelclass {
	struct kallsyms *symbols; /* NULL: not read yet, or not readable */
	uint16_t *known;          /* for each function: the bits of enum kernelname, and bit 8 once it was looked at */
	bool read;
};

/* Of a text like /proc/kallsyms, which may be NULL. Pure. */
void kernelclass_parse(struct kernelclass *k, const char *kallsyms);
void kernelclass_done(struct kernelclass *k);
/* The bits of enum kernelname; 0 also where the kernel hides its addresses. */
uint8_t kernelclass_of(struct kernelclass *k, uint64_t address);
/* Hands the list over to the caller, who frees it, if it was read; NULL if not. Nothing is known of names afterwards. */
struct kallsyms *kernelclass_take(struct kernelclass *k);
