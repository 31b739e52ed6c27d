/*
 * goswitch.h - where functions of Go's runtime switch stacks, and the rules there (gorows.h).
 *
 * The functions are known by their names, the places in them by their instructions: offsets and frames differ
 * between versions of Go, and a function of the same name may be a wrapper that switches nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gotab_function;

enum goswitch_kind {
	GOSWITCH_NONE,
	GOSWITCH_ROOT,        /* nothing called it */
	GOSWITCH_SIGNAL,      /* a signal handler returns to it */
	GOSWITCH_LEAVE,       /* leaves the stack that it was called on for good */
	GOSWITCH_SYSTEMSTACK,
	GOSWITCH_MORESTACK,
	GOSWITCH_CGO,         /* asmcgocall */
	GOSWITCH_OTHER,       /* switches or aligns its stack, and switches back */
};

/* Where a thread finds its goroutine, as the instructions of runtime.systemstack tell. */
struct goswitch_curg {
	bool known;
	int16_t g;    /* of the word with g, from the thread's FS base */
	int32_t curg; /* of m.curg in m */
};

/* The rule for [start, end) of a function, offsets from its entry. */
struct goswitch_part {
	uint32_t start, end;
	uint64_t rule;
};

enum { GOSWITCH_MAX_PARTS = 5 };

enum goswitch_kind goswitch_kind(const struct gotab_function *f);
/* Reads the instructions of runtime.systemstack. */
void goswitch_find_curg(const uint8_t *code, size_t n, struct goswitch_curg *ret);
/* Finds the parts of a function that does not keep rbp as its frame pointer, or leaves its stack. The parts ascend;
 * elsewhere the frame size counts. Returns their number. */
size_t goswitch_parts(enum goswitch_kind kind, const struct goswitch_curg *curg, const uint8_t *code, size_t n,
		      struct goswitch_part ret[GOSWITCH_MAX_PARTS]);
