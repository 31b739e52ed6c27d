/*
 * allocator.h - a file's part in allocating memory: the functions it has, and the slots through which it calls them.
 *
 * Plain data of a fixed size: the unprivileged child fills it (worker.h). Addresses are those
 * of the file.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;

/* How a function is called: see collect/heap/blob/blob.h, which has hooks for each. */
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
	/* Whose it is: "jemalloc (_rjem_)"; "" for names that any allocator may have. */
	const char *family;
	/* It may call malloc through a slot of its own, where it would be seen twice: only where both are of one
	 * file. */
	bool inside;
};
extern const struct allocator_name allocator_names[]; /* ends in one without a name */

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

/* Where an allocator passes by once for many allocations: jemalloc's te_event_trigger. */
struct allocator_probe {
	uint64_t address;
	uint64_t offset; /* in the file */
	uint8_t code[ALLOCATOR_CODE]; /* its first bytes */
};

struct allocator_info {
	uint32_t function_count, slot_count, range_count, probe_count, own_count, zero;
	struct allocator_function functions[ALLOCATOR_FUNCTIONS]; /* that the file defines */
	struct allocator_function slots[ALLOCATOR_SLOTS];         /* that the loader fills in, by name */
	struct allocator_probe probes[ALLOCATOR_PROBES];
	struct allocator_range own[ALLOCATOR_OWN];                /* where there are probes: the allocator's functions */
	struct allocator_range ranges[ALLOCATOR_RANGES];          /* the tables of addresses that it calls through */
};

void allocator_find(struct elf *elf, struct allocator_info *ret);
/* Bytes to pass over before the first instruction that does something: those of endbr64. */
unsigned allocator_probe_skip(const struct allocator_probe *probe);
/* Does the kernel emulate the instruction after these when a uprobe is on it, rather than step over a copy of it? */
bool allocator_probe_cheap(const struct allocator_probe *probe);
/* Are its numbers within their bounds? */
bool allocator_check(const struct allocator_info *info);
