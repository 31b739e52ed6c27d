/*
 * binary.h - names for the addresses of one ELF file: from the cache, else from the files found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"
#include "symbol/find.h"

struct binary {
	struct find find;   /* what to look for; filled by the caller, see find.h */
	bool keep_hash;
	/* A sentence about the problem when some names are missing; "" otherwise. */
	char problem[640];
};

/* addresses ascend, each once. got is called once for each; its strings are valid during the call only. */
void binary_resolve(struct binary *b, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		    void *context);
