/* jitfile.h - finds the JIT map and dumps of a process and reads them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct jit;
struct profile;

/* All that a process of the profile left; NULL if nothing, and why gets a sentence then. */
struct jit *jitfile_load(const struct profile *p, uint32_t process, char *why, size_t why_size);
