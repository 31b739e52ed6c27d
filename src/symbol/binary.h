/*
 * binary.h - names for the addresses of one ELF file: from the cache, else from the files found.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/symbols.h"
#include "symbol/find.h"

/* Where the function of address index starts and ends, for addresses without a symbol of their own. */
typedef void binary_range_fn(void *context, size_t index, uint64_t start, uint64_t end);

struct binary {
	struct find find;   /* what to look for; filled by the caller, see find.h */
	bool keep_hash;
	bool often;         /* see symbolize.h */
	binary_range_fn *range; /* called after got, with the same context; may be NULL */
	bool by_other;      /* the names that got receives now are those of another build */
	/* A sentence about the problem when some names are missing; "" otherwise. */
	char problem[640];
	/* A sentence about another build whose names were used; "" = none. */
	char other[640];
};

/* addresses ascend, each once. got is called once for each; its strings are valid during the call only. */
void binary_resolve(struct binary *b, const uint64_t *addresses, size_t n, symbols_got_fn *got,
		    void *context);
