/*
 * blobhead.h - what the fixed parts of all blobs have in common: their head, and the slots that lead to them.
 *
 * A blob is a small ELF file without libc, relocations or state of its own, mapped into a target:
 *
 *	image    private, executable    hooks and their unwind information, of a memfd that is sealed
 *	fixed    private, read-only     begins with struct blob_head; gasflame writes it through /proc/PID/mem
 *	local    private                begins with a uint32_t, 0: hooks pass on; zeroed by fork
 *	shared   shared with gasflame   of a second memfd; no child of fork has it
 *
 * Shared by both sides and by different versions of gasflame: a blob's version fixes its layout.
 */
#pragma once

#include <stdint.h>

#define BLOB_NAMES "gasflame-" /* the names of all memfds begin with this */

struct blob_head {
	uint64_t magic;             /* last of all: without it nothing leads here */
	uint32_t version, size;     /* of the fixed part's struct */
	uint64_t image, slot_count; /* address of the image in the target */
};

/* A slot that points to a hook, and what was there before. */
struct blob_slot {
	uint64_t address, original, hook;
};
