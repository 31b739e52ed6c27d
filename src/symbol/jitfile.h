/* jitfile.h - finds the JIT map and dumps of a process and has the unprivileged child read them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"

struct profile;
struct worker;

/* Finds names for addresses of a process of the profile; addresses ascend and are unique. got is called
 * once for each address that has a name. why gets a sentence when the process left no usable file. */
void jitfile_resolve(const struct profile *p, uint32_t process, struct worker *w, const uint64_t *addresses, size_t n,
		     symbols_got_fn *got, void *context, char *why, size_t why_size);
