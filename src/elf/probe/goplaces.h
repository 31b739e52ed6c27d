/*
 * goplaces.h - where the runtime of a Go program parks, readies and runs goroutines, and what it calls the reasons.
 *
 * Runs in the unprivileged child: names, code and data of the file are untrusted. From Go 1.17 on a function begins by
 * comparing its stack pointer with the limit of its goroutine, whose address is in r14, and by a conditional jump:
 *
 *	cmp rsp, [r14 + 0x10]
 *	jbe more_stack
 *
 * The jump is the place for a uprobe: the kernel emulates it, it runs in each call, and the arguments are still in
 * the registers of the call (rax, rbx, rcx). Any other instruction there would be single-stepped, for twenty times the cost.
 * On arm64 the same is, from Go 1.18 on, with the goroutine in x28 and arguments in x0, x1, x2:
 *
 *	ldr x16, [x28, #16]
 *	cmp sp, x16
 *	b.ls more_stack
 *
 * The reasons of gopark() are numbers whose meaning changes with the version of Go. The runtime has a table of their
 * names, which is found by its first entries: no symbol is needed.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct elf;

enum goplaces_what { GOPLACES_PARK, GOPLACES_READY, GOPLACES_RUN, GOPLACES_COUNT };
enum { GOPLACES_REASONS = 64, GOPLACES_REASON = 40 };

/* Why goroutines cannot be followed; the parent has the message. */
enum goplaces_trouble {
	GOPLACES_USABLE,
	GOPLACES_NO_GO,    /* no program of Go */
	GOPLACES_NO_NAMES, /* of Go, but its functions have no names that can be read */
	GOPLACES_OLD,      /* built by Go before 1.17 (arm64: 1.18): arguments are on the stack */
	GOPLACES_OTHER,    /* the functions do not begin as above, or it is for another machine */
	GOPLACES_TROUBLES,
};

struct goplaces {
	uint32_t trouble;      /* enum goplaces_trouble */
	uint32_t reason_count; /* 0: the table was not found */
	uint64_t offset[GOPLACES_COUNT]; /* in the file */
	char reasons[GOPLACES_REASONS][GOPLACES_REASON]; /* "chan receive" */
};

void goplaces_find(struct elf *elf, struct goplaces *ret);
/* Returns whether all numbers are within their bounds. Cleans the names. */
bool goplaces_check(struct goplaces *g);
/* Returns the trouble as a clause for people: "it was built …". */
const char *goplaces_trouble_text(uint32_t trouble);
