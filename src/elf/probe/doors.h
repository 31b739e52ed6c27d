/*
 * doors.h - where functions are entered and left, for marks that are spans of a function.
 *
 * Runs in the unprivileged child: names, tables and code are untrusted. A function is found by a part of its
 * readable name. Its entry and return sites are places for uprobes, as offsets in the file:
 *
 * - in: the first instruction that the kernel emulates and that runs once in each call, before any branch. The
 *   kernel single-steps a copy of any other instruction, which costs ten times as much; such a place is not used.
 * - out: each return, and each tail call. No kernel so far emulates returns.
 *   (A uretprobe would be one probe for all, but it changes the return address on the stack: neither we nor a
 *   panic handler of the program itself could unwind through the function any more.)
 *
 * A future's poll function (an async block of Rust) is entered for each poll. It begins by reading the state
 * in the future: 0 = not begun, 1 = done, 2 = panicked, 3 and above = waiting. Where that read is found,
 * `future` and `state` say where the state is, and its value tells which polls belong together.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf;
struct err;

enum { DOORS_FUNCTIONS = 16, DOORS_OUT = 48, DOORS_NAME = 240, DOORS_PATTERNS = 16, DOORS_TEXT = 4096 };

/* Why a function cannot be probed; the parent has the message. */
enum doors_trouble {
	DOORS_USABLE,
	DOORS_STEPPED_IN, /* no instruction at its beginning is emulated */
	DOORS_NO_OUT,     /* it never returns */
	DOORS_MANY_OUT,
	DOORS_NO_CODE,    /* the file has no code there, or too much to read */
	DOORS_TROUBLES,
};

enum doors_future { DOORS_NO_FUTURE, DOORS_FUTURE_1ST, DOORS_FUTURE_2ND }; /* which argument it is */

struct doors {
	uint64_t address, size;
	uint64_t in;      /* offset in the file */
	uint32_t depth;   /* bytes pushed before it, by which the stack pointer is lower there */
	uint32_t out_count;
	uint64_t out[DOORS_OUT];
	uint32_t future;  /* enum doors_future */
	uint32_t state;   /* offset of the state in the future */
	uint32_t trouble; /* enum doors_trouble */
	uint32_t pattern; /* index of the pattern that it matched */
	uint8_t code[8];  /* its first bytes, to be shown */
	char name[DOORS_NAME]; /* readable, cut */
};

struct doors_info {
	uint32_t count, zero;
	uint64_t functions;                  /* in the file's tables */
	uint64_t matched[DOORS_PATTERNS];    /* for each pattern, also beyond the array's size */
	struct doors list[DOORS_FUNCTIONS];
};

/*
 * How well a readable name matches a pattern: 0 = not, 1 = somewhere in its path, 2 = at its end. Parts
 * within <> do not count where there is a path around them, so that neither drop_in_place<f> nor a generic
 * argument matches f.
 */
int doors_fit(const char *name, const char *pattern);
/* text: patterns, each with a NUL at its end, n bytes in all. The best matches of each are taken. */
int doors_find(struct elf *elf, const char *text, size_t n, struct doors_info *ret, struct err *err);
/* Reads the code of one function; part of doors_find, -ENOTSUP in a build without a disassembler. */
int doors_read(const struct elf *elf, struct doors *d, uint64_t cold, uint64_t cold_size, bool may_be_future, struct err *err);
/* Returns whether all numbers are within their bounds. Terminates the names. */
bool doors_check(struct doors_info *info);
/* Returns the trouble as a sentence for people: "begins with …". */
const char *doors_trouble_text(uint32_t trouble);
