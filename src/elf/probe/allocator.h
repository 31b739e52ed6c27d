/*
 * allocator.h - the allocation functions that a file defines, and the GOT slots through which it calls them.
 *
 * Plain data of a fixed size: the unprivileged child fills it (worker.h). Addresses are those of the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;

/* The signature of a function: see collect/heap/blob/blob.h, which has hooks for each. */
enum allocator_shape {
	ALLOCATOR_SIZE,     /* (size, …) */
	ALLOCATOR_SIZE_2ND, /* (alignment, size) */
	ALLOCATOR_PRODUCT,  /* (n, size) */
	ALLOCATOR_OUT,      /* (&pointer, alignment, size) */
	ALLOCATOR_RESIZE,   /* (pointer, size, …) */
	ALLOCATOR_FREE,     /* (pointer, …) */
	ALLOCATOR_SHAPES,
	/* No allocation, and never hooked: jemalloc's mallctl. */
	ALLOCATOR_CONTROL = ALLOCATOR_SHAPES,
};

struct allocator_name {
	const char *name;
	enum allocator_shape shape;
	/* The allocator, such as "jemalloc (_rjem_)"; "" for names that any allocator may have. */
	const char *family;
	/* The function may call malloc through a slot of its own, so that the allocation would be counted
	 * twice, but only where both are in one file. */
	bool inside;
};
extern const struct allocator_name allocator_names[]; /* ends with an entry without a name */

enum { ALLOCATOR_FUNCTIONS = 96, ALLOCATOR_SLOTS = 480, ALLOCATOR_RANGES = 8, ALLOCATOR_PROBES = 4,
       ALLOCATOR_CODE = 16, ALLOCATOR_OWN = 512 };

struct allocator_function {
	uint64_t address;
	uint32_t name; /* into allocator_names */
	uint32_t zero;
};

struct allocator_range {
	uint64_t start, end;
};

/* A function that the allocator calls once for many allocations: jemalloc's te_event_trigger. */
struct allocator_probe {
	uint64_t address;
	uint64_t offset; /* in the file */
	uint32_t arm64;  /* it is code of arm64, not of x86-64 */
	uint32_t zero;
	uint8_t code[ALLOCATOR_CODE]; /* its first bytes */
};

struct allocator_info {
	uint32_t function_count, slot_count, range_count, probe_count, own_count, zero;
	struct allocator_function functions[ALLOCATOR_FUNCTIONS]; /* functions that the file defines */
	struct allocator_function slots[ALLOCATOR_SLOTS];         /* filled in by the loader, by name */
	struct allocator_probe probes[ALLOCATOR_PROBES];
	struct allocator_range own[ALLOCATOR_OWN];                /* where there are probes: its functions */
	struct allocator_range ranges[ALLOCATOR_RANGES];          /* tables of addresses that it calls through */
};

void allocator_find(struct elf *elf, struct allocator_info *ret);
/* Returns the bytes to skip before the first real instruction: those of endbr64. */
unsigned allocator_probe_skip(const struct allocator_probe *probe);
/* Returns whether the kernel emulates the instruction after these bytes under a uprobe, rather than
 * single-step a copy of it. On arm64: whether it takes a uprobe there. */
bool allocator_probe_cheap(const struct allocator_probe *probe);
/* Returns whether all numbers are within their bounds. */
bool allocator_check(const struct allocator_info *info);
