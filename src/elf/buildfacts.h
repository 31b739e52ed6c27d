/*
 * buildfacts.h - what a program's file says of how it was built, and by whom: compiler, version, frame pointers, and the
 * configuration of a jemalloc in it.
 *
 * Plain data of a fixed size: the unprivileged child fills it (worker.h). Everything is text of the file, and so a
 * stranger's word: it is for people to read, and nothing is decided by it.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;

enum { BUILDFACTS_PROF_UNKNOWN, BUILDFACTS_PROF_NO, BUILDFACTS_PROF_YES };

struct buildfacts {
	char compiler[48];     /* "rustc 1.95.0", "go1.24.2", "GCC 14.2.0"; "" = it does not say */
	char program[24];      /* by the paths of its sources: "reth", "ethrex", "anvil", "geth"; "" = not known */
	char flavour[24];      /* of reth: "op-reth", "xlayer-reth" */
	char version[48];      /* "2.5.1" */
	char commit[48];       /* "7b3432d950…" */
	char profile[24];      /* of cargo: "maxperf" */
	char features[256];    /* of cargo: "asm-keccak,jemalloc" */
	char malloc_conf[256]; /* of jemalloc, compiled in: "prof:true,lg_prof_sample:19" */
	uint32_t prof;         /* of jemalloc: is profiling compiled in? BUILDFACTS_PROF_* */
	uint32_t checked, framed; /* functions that were looked at, and those that set up a frame pointer */
};

void buildfacts_find(struct elf *elf, struct buildfacts *ret);
/* What an answer has may be anything: ends the strings, and leaves only bytes that can be printed. */
void buildfacts_clean(struct buildfacts *b);
