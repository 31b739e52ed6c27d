/*
 * memory.h - what the memory of processes is made of.
 *
 * The parts add up to RSS, to the page: each resident page of each mapping is in exactly one of them.
 * Where mappings may not be read (another user's process), status still has the totals: walked is false.
 *
 *	struct memory m = { 0 };
 *	if (!memory_read(pid, true, &m))
 *		printf("%llu of %llu in stacks\n", m.part_bytes[MEMORY_STACKS], m.rss_bytes);
 *	memory_done(&m);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct smaps;

enum memory_part {
	MEMORY_HEAP,      /* [heap], arenas of glibc, mappings that an allocator has named */
	MEMORY_ANONYMOUS, /* anonymous memory that says nothing of itself: most allocators', and the program's
			     own */
	MEMORY_FILES,     /* pages of mapped files, as they are in the file */
	MEMORY_SHARED,    /* shared memory: memfd, tmpfs, System V, shared anonymous */
	MEMORY_STACKS,    /* of threads */
	MEMORY_DATA,      /* variables of programs and libraries: written copies of file pages, and .bss */
	MEMORY_OTHER,     /* [vdso] and what else the kernel maps */
	MEMORY_PARTS,
};

struct memory_file {
	char *path;
	uint64_t rss_bytes, size_bytes; /* pages of the file itself; mapped */
};

struct memory {
	bool walked;
	uint32_t processes, threads,
		stacks; /* stacks: more than threads where some are kept for the next one */
	uint64_t rss_bytes;
	uint64_t anon_bytes, file_bytes, shmem_bytes; /* the same, as the kernel divides it */
	uint64_t swap_bytes, page_table_bytes, peak_bytes, virtual_bytes, hugetlb_bytes;
	uint64_t minor_faults, major_faults;          /* since it was started */
	/* The rest only where walked. */
	uint64_t part_bytes[MEMORY_PARTS];
	uint64_t pss_bytes, shared_bytes, locked_bytes, huge_bytes, lazyfree_bytes;
	VEC(struct memory_file) files; /* most first */
};

/* -ESRCH: it is gone. walk false: only the cheap figures, which may be some pages off per CPU. */
int memory_read(pid_t pid, bool walk, struct memory *ret);
/* Adds a process to others. */
void memory_add(struct memory *sum, const struct memory *m);
void memory_done(struct memory *m);

/* Facts that the mappings themselves do not show. */
struct memory_hints {
	VEC(uint64_t) pointers; /* of threads' stacks */
	VEC(uint64_t) tmpfs;    /* devices: major << 32 | minor */
	uint32_t threads;       /* more than pointers where some could not be asked */
	char *exe;              /* path, NULL = not known */
};
/* Which part each mapping belongs to, in the order of the list; caller frees. *ret_stacks: how many are
 * stacks. */
uint8_t *memory_classify(const struct smaps *s, const struct memory_hints *h, uint32_t *ret_stacks);
/* The parts, the files and all else that comes from mappings. */
void memory_sum(const struct smaps *s, const uint8_t *parts, struct memory *m);
/* "memory" of the text of mountinfo: devices of tmpfs and the like. */
void memory_parse_mounts(const char *text, struct memory_hints *h);
/* Parses the stack pointer in the text of /proc/PID/task/TID/syscall; 0: the thread runs, or we may not
 * ask. */
uint64_t memory_parse_syscall(const char *text);

/* --- which part of objects is resident --- */

struct memory_object {
	uint64_t address, size;
	uint64_t weight; /* bytes that it stands for */
};
struct memory_resident {
	uint64_t bytes;       /* of all weights, by the share of each object that is in memory */
	uint64_t arena_bytes; /* RSS of the anonymous mappings that hold any of them */
};
/* Sorts the objects. */
int memory_resident(pid_t pid, struct memory_object *objects, size_t n, struct memory_resident *ret);
