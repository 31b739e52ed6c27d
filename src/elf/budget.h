/*
 * budget.h - what reading one file of a target may cost. Every limit has its name here.
 *
 * Limits in bytes keep a file from being larger than what its owner has on disk: a sparse file of terabytes
 * costs him nothing, and us all the memory of the machine. Limits in time grow with what is really there
 * (BUDGET_CPU_BYTES_S), so that honest files of gigabytes are read whole and hostile ones of kilobytes end soon.
 * The child (worker.h) keeps to the first kind, the parent measures the child's CPU time and ends it.
 */
#pragma once

#include <stdint.h>

/* --- the shape of a file: what no linker makes is not read --- */
enum {
	BUDGET_SECTIONS = 100000,
	BUDGET_SEGMENTS = 4096,          /* the kernel executes no file with more than 1,170 */
	BUDGET_NOTES_BYTES = 1 << 20,    /* of one PT_NOTE */
	BUDGET_HOLE_BYTES = 16 << 20,    /* a section may be this much larger than what the disk holds of its file */
	BUDGET_EXTENTS = 4096,           /* what lies behind so many holes counts as a hole */
	BUDGET_PACKED_RATIO = 64,        /* of a compressed section; debug information packs about 1 : 5 */
};
#define BUDGET_FILE_BYTES (16ULL << 30)  /* really there; no debug file is known to be larger */
#define BUDGET_UNPACKED_BYTES (4ULL << 30) /* of all compressed sections of one file together */
#define BUDGET_JIT_BYTES (256ULL << 20)  /* of one perf map or jitdump */
#define BUDGET_CRC_BYTES (4ULL << 30)    /* of a debug file that has no build-id */

/* --- the time of one request --- */
#define BUDGET_CPU_NS 2000000000ULL      /* whatever the file is */
#define BUDGET_CPU_BYTES_S (16ULL << 20) /* and a second for each so many bytes; honest ones take a tenth of it */
#define BUDGET_CPU_ADDRESS_NS 100000ULL  /* and for each address that is asked for */
#define BUDGET_WALL_NS 10000000000ULL    /* beside 4 times the CPU time: a slow disk, a busy machine */

/* --- all requests of one worker --- */
#define BUDGET_WASTED_NS 10000000000ULL  /* CPU time for files that were given up; then an 8th of the above is left */
enum {
	BUDGET_CHILD_CPU_S = 600,        /* of one child: it is replaced before, and ends by itself at that */
	BUDGET_CACHE_FILES = 256,
};
#define BUDGET_CACHE_BYTES (1ULL << 30)  /* of page cache that reading may leave behind */

/* How many bytes of an open file are there, rather than holes. Moves the descriptor's position. */
uint64_t budget_real_bytes(int fd, uint64_t size);
/* CPU time for a request about files of so many bytes, and so many addresses. */
uint64_t budget_cpu_ns(uint64_t file_bytes, uint64_t addresses, uint64_t wasted_ns);
uint64_t budget_wall_ns(uint64_t cpu_ns);
