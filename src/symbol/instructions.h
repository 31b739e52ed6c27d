/*
 * instructions.h - the code of a function of a profile: finds the file, the unprivileged child reads it.
 */
#pragma once

#include <stdint.h>

#include "elf/worker/worker.h"

struct err;
struct profile;

/* paths: --symbols, as in symbolize.h; may be NULL. Only a file with the module's build-id will do. */
int instructions_read(const struct profile *p, uint32_t module, uint64_t address, struct worker *w,
		      const char *const *paths, worker_instruction_fn *got, void *context, struct err *err);
