/*
 * jitnames.h - names for code that a run time made.
 *
 * They come from the process's jitdumps and perf maps (jitfiles.h), which the unprivileged child reads.
 * Code that is in none of them is named by its page of 4 KiB, so that a hot function is a box or two and
 * not one for each address.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"

struct jitfiles;
struct profile;
struct worker;

/*
 * Finds names for addresses of a process of the profile; addresses ascend and are unique. got is called once for each
 * address that has a name. past, which may be NULL, is called later, for addresses where a dump says that there was other
 * code before: its calls are names in order of time, and line is since when, in ms of the recording. why gets a sentence
 * when there are addresses without a name, or a file was not used.
 */
void jitnames_resolve(const struct profile *p, uint32_t process, struct jitfiles *files, struct worker *w,
		      const uint64_t *addresses, size_t n, symbols_got_fn *got, symbols_got_fn *past, void *context, char *why,
		      size_t why_size);

/* Returns the page of an address that has no name, from where the module's first mapping begins, so that it says little of
 * the process's addresses; the page's own address where that mapping is not known or lies above. */
uint64_t jitnames_page(const struct profile *p, uint32_t module, uint64_t address);
