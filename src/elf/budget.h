/*
 * budget.h - limits on the cost of reading one file of a target. Every limit has its name here.
 *
 * Byte limits refuse sections that are larger than the data on disk: a sparse file of terabytes is free for
 * its owner but would fill our memory. Time limits grow with the data on disk (BUDGET_CPU_BYTES_S), so that
 * honest files of gigabytes are read whole and hostile files of kilobytes end soon. The child (worker.h)
 * enforces the byte limits; the parent measures the child's CPU time and kills it.
 */
#pragma once

#include <stdint.h>

/* --- the shape of a file: sizes that no linker produces are refused --- */
enum {
	BUDGET_SECTIONS = 100000,
	BUDGET_SEGMENTS = 4096,          /* the kernel executes no file with more than 1,170 */
	BUDGET_NOTES_BYTES = 1 << 20,    /* of one PT_NOTE */
	BUDGET_HOLE_BYTES = 16 << 20,    /* a section may be this much larger than what the disk holds of its file */
	BUDGET_GO_FUNCTIONS = 4 << 20,   /* the largest Go programs have some 100,000 */
	BUDGET_GO_RELOCATIONS = 8 << 20, /* of a Go program that is a PIE */
	BUDGET_GO_TABLES = 64,           /* places in a file without section headers that look like Go's table */
	BUDGET_EXTENTS = 4096,           /* data after this many holes counts as a hole */
	BUDGET_PACKED_RATIO = 64,        /* of a compressed section; debug information packs about 1 : 5 */
};
#define BUDGET_FILE_BYTES (16ULL << 30)  /* data on disk; no larger debug file is known */
#define BUDGET_UNPACKED_BYTES (4ULL << 30) /* of all compressed sections of one file together */
#define BUDGET_JIT_BYTES (256ULL << 20)  /* of one perf map: its end, as the last line about an address counts */
#define BUDGET_JIT_DUMP_BYTES (4ULL << 30) /* of one jitdump: its start, as each record says where the next one is; most
					  * of it is code, which is not touched */
#define BUDGET_CRC_BYTES (4ULL << 30)    /* of a debug file that has no build-id */

/* --- time for one request --- */
#define BUDGET_CPU_NS 2000000000ULL      /* for any file */
#define BUDGET_CPU_BYTES_S (16ULL << 20) /* plus a second for each so many bytes; honest files take a tenth
					  * of it */
#define BUDGET_CPU_ADDRESS_NS 100000ULL  /* plus this for each address that is looked up */
#define BUDGET_WALL_NS 10000000000ULL    /* beside 4 times the CPU time, for a slow disk or a busy machine */

/* --- all requests of one worker --- */
#define BUDGET_WASTED_NS 10000000000ULL  /* CPU time wasted on abandoned files; past it, requests get an
					  * eighth of the time above */
enum {
	BUDGET_CHILD_CPU_S = 600,        /* RLIMIT_CPU of one child; the parent replaces it earlier */
	BUDGET_CACHE_FILES = 256,
};
#define BUDGET_CACHE_BYTES (1ULL << 30)  /* page cache that reading may leave behind */

/* Returns how many bytes of an open file are data rather than holes. Moves the descriptor's position. */
uint64_t budget_real_bytes(int fd, uint64_t size);
/* Returns the CPU time for a request about files of file_bytes in total and so many addresses. */
uint64_t budget_cpu_ns(uint64_t file_bytes, uint64_t addresses, uint64_t wasted_ns);
uint64_t budget_wall_ns(uint64_t cpu_ns);
