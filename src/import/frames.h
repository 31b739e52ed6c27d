/*
 * frames.h - what importers make of foreign frames: modules by their path, frames by what is known of them, stacks.
 *
 * A frame that has a name keeps it, with file and line; a frame that has an address in a file, and no name, is named by the
 * symbolizer afterwards. The same arguments give the same id.
 *
 *	struct frames f;
 *	frames_init(&f, p);
 *	uint32_t module = frames_module(&f, "/usr/bin/reth", NULL, 0);
 *	uint32_t frame = frames_named(&f, module, FRAME_USER, 0, &(struct frames_call){ .name = "main", .line = 7 }, 1);
 *	uint32_t stack = frames_stack(&f, leaf_first, n);
 *	frames_done(&f);
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "profile/profile.h"

struct frames {
	struct profile *p;
	/* The rest is private. */
	struct map links; /* a trie of numbers: node and number to node */
	struct map ids;   /* node to what was made for it */
};

void frames_init(struct frames *f, struct profile *p);
void frames_done(struct frames *f);

/* A file by its path and build-id (NULL: not known). "[kernel]", "[kernel.kallsyms]", "vmlinux" and "name.ko" are the kernel's,
 * "[vdso]" is known, too; "" and NULL give PROFILE_NONE. */
uint32_t frames_module(struct frames *f, const char *path, const uint8_t *build_id, size_t build_id_size);

/* A call: of one frame the innermost first, all but the last inlined into the next. */
struct frames_call {
	const char *name; /* "" and NULL: not known, "[unknown]" */
	const char *file; /* NULL = not known */
	uint32_t line;    /* 0 = not known */
	const char *linkage; /* as in the symbol table; NULL, "": as name */
};
/* module may be PROFILE_NONE. address: in the module, 0 = not known; frames of other addresses are other frames. */
uint32_t frames_named(struct frames *f, uint32_t module, enum profile_frame_kind kind, uint64_t address,
		      const struct frames_call *calls, size_t n);
/* Frames from the leaf on, or from the outermost on, as a stack. */
uint32_t frames_stack(struct frames *f, const uint32_t *leaf_first, size_t n);
uint32_t frames_stack_outer(struct frames *f, const uint32_t *outermost_first, size_t n);

/* The thread of that process and tid, made with this name if there is none; a name that is not "" replaces "". Of imports
 * without ids: pid and tid 0, and threads are told apart by name. */
uint32_t frames_thread(struct frames *f, uint32_t pid, uint32_t tid, const char *name);

/* Is it the kernel or a module of it, by the path that tools write? */
bool frames_is_kernel(const char *path);

/* Is it an address of the kernel's code or data? What lies above them is no address, but often a number on a stack. */
static inline bool frames_kernel_address(uint64_t address)
{
	return address >= PROFILE_KERNEL_HALF && address < 0xffffffffff000000ULL;
}

/* Nanoseconds of a decimal number of seconds without rounding: "123.456789". *end: after it; text itself, and 0, where there is
 * none, or one of more than 290 years. */
uint64_t frames_seconds_ns(const char *text, const char **end);
