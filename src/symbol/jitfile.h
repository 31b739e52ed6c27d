/* jitfile.h - finds the JIT map and dumps of a process and has the unprivileged child read them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"

struct profile;
struct worker;

/* Names for addresses of a process of the profile, which ascend, each once; got hears of each that has one, once. why gets
 * a sentence when the process left nothing that can be used. */
void jitfile_resolve(const struct profile *p, uint32_t process, struct worker *w, const uint64_t *addresses, size_t n,
		     symbols_got_fn *got, void *context, char *why, size_t why_size);
