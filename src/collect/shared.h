/*
 * shared.h - what the BPF programs and user space both read: fixed widths, explicit padding.
 */
#pragma once

#ifndef __bpf__
#include <stdint.h>
#endif

#include "elf/rule.h"

enum {
	SHARED_MAX_USER_FRAMES = 512,
	SHARED_MAX_KERNEL_FRAMES = 127,

	SHARED_CHUNK_WORDS = 1 << 18,     /* 1 MiB of 4-byte words */
	SHARED_MAX_CHUNKS = 1024,
	SHARED_MAX_MODULES = 1 << 16,
	SHARED_MAX_RULES = 1 << 16,
	SHARED_PC_CACHE = 1 << 15,        /* slots of the cache from address to rule */
	SHARED_SEEN = 1 << 17,            /* slots of the cache of stacks already sent */

	SHARED_FEW_MAPPINGS = 64,         /* most processes */
	SHARED_MANY_MAPPINGS = 4096,      /* the rest: one entry of another map */
	SHARED_MAX_PROCESSES = 16384,
	SHARED_MAX_LARGE = 256,
};

/* Why a stack ends where it does. Index into shared_reason_names. */
enum shared_reason {
	REASON_COMPLETE = 0,
	REASON_NO_MAPPING,     /* the address lies in no executable mapping that is known */
	REASON_NO_TABLE_YET,   /* its table is still being made */
	REASON_NO_RULE,        /* the file's table does not cover the address */
	REASON_UNSUPPORTED,    /* a rule that cannot be expressed */
	REASON_LOST_REGISTER,  /* it needs a register that only the leaf has */
	REASON_BAD_STACK,      /* the stack memory could not be read */
	REASON_NOT_RISING,     /* the stack pointer did not rise: a loop */
	REASON_FRAME_POINTER,  /* no table, and rbp is no frame pointer */
	REASON_TOO_DEEP,       /* more than SHARED_MAX_USER_FRAMES */
	REASON_NO_REGISTERS,   /* the user registers could not be had */
	REASON_ENDING,         /* the thread was ending, its memory was gone already */
	REASON_DUMP_SHORT,     /* without BPF only: deeper than the stack dump */
	REASON_COUNT,
};

/* A frame as the kernel side stores it. Kernel frames are plain addresses. */
#define SHARED_FRAME(module, address) ((uint64_t)(module) << 48 | ((address) & 0xffffffffffffULL))
#define SHARED_FRAME_MODULE(f) ((uint32_t)((f) >> 48))
#define SHARED_FRAME_ADDRESS(f) ((uint64_t)(f) & 0xffffffffffffULL)

/* One executable mapping of a process. Module 0 is no module. */
struct shared_mapping {
	uint64_t start, end;
	uint64_t bias; /* address in the process - address in the module */
	uint32_t module;
	uint32_t pad;
};

/* Sorted by start. In the map of large processes there is room for more. */
struct shared_process {
	uint32_t count;
	uint32_t large; /* look into the other map instead */
	uint64_t pad;
	struct shared_mapping mappings[SHARED_FEW_MAPPINGS];
};

struct shared_large {
	uint32_t count;
	uint32_t pad[3];
	struct shared_mapping mappings[SHARED_MANY_MAPPINGS];
};

enum shared_module_state { MODULE_NO_TABLE = 0, MODULE_BUILDING = 1, MODULE_TABLE = 2 };

/*
 * Where a module's table lies in the space of words that the chunks make up:
 * at index two words for each page {position of its first row, count}.
 */
struct shared_module {
	uint64_t first_page; /* address >> 12 */
	uint32_t page_count;
	uint32_t index;
	uint32_t state;
	uint32_t pad;
};

enum shared_record_kind { RECORD_CPU = 1 };

/* What comes through the ring; frames follow (8 bytes each; the user's, then the kernel's, each leaf
 * first) when the stack was not sent before. */
struct shared_record {
	uint32_t kind;
	uint32_t pid, tid;
	uint16_t user_count, kernel_count;
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t value;
	uint64_t stack; /* hash of what follows */
	uint8_t reason;
	uint8_t has_frames;
	uint8_t pad[6];
	char name[16];
};

struct shared_counts {
	uint64_t samples, ring_full, stacks_sent;
	uint64_t guessed; /* samples whose stack passes code that has no table */
};

_Static_assert(sizeof(struct shared_mapping) == 32, "layout");
_Static_assert(sizeof(struct shared_process) == 16 + 32 * SHARED_FEW_MAPPINGS, "layout");
_Static_assert(sizeof(struct shared_module) == 24, "layout");
_Static_assert(sizeof(struct shared_record) == 64, "layout");
