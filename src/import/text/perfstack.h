/*
 * perfstack.h - the lines of a stack, as perf script prints them, as a stack of a profile.
 *
 *		ffffffff81a3 next_folio+0xc1 ([kernel.kallsyms])
 *		       48c10 inner (inlined)
 *	  file.c:12
 *		       48c10 outer->more+0x10 (/usr/bin/reth)
 *	  file.c:34
 *
 * Inlined functions belong to the frame that follows them; in "a->b" b was inlined into a. A line that begins with two spaces, and
 * is no frame, is the place in the source of the frame before it. Frames that came before are found by their text: memory is a
 * table of fixed size besides the profile.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "import/frames.h"

struct perfstack_call {
	char *name, *file;
	uint32_t line;
};

struct perfstack {
	struct frames *f;
	/* Addresses are those of the file's own symbols, as gasflame writes them: frames without a name may be named. perf writes
	 * addresses of the process, or places in the file, of which a name cannot be made without the file's mappings. */
	bool in_modules;
	uint64_t unknown_lines; /* that are neither a frame nor a place in the source */
	/* The rest is private. */
	struct perfstack_memo *memos;
	VEC(uint32_t) list;                /* leaf first */
	VEC(struct perfstack_call) calls;  /* of the frame that is being read, innermost first */
};

void perfstack_init(struct perfstack *s, struct frames *f);
void perfstack_done(struct perfstack *s);
/* Lines with their ends. */
uint32_t perfstack_make(struct perfstack *s, const char *text, size_t n);
