/*
 * probesites.h - where functions are entered and left, for marks that are spans of a function.
 *
 * Runs in the unprivileged child: names, tables and code are untrusted. A function is found by a part of its
 * readable name. Its entry and return sites are places for uprobes, as offsets in the file; on x86-64 (sitesarm64.h says what is
 * other on arm64):
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

enum {
	PROBESITES_FUNCTIONS = 16,
	PROBESITES_OUT = 48,
	PROBESITES_NAME = 240,
	PROBESITES_PATTERNS = 16,
	PROBESITES_TEXT = 4096,
	PROBESITES_MOST_LINK = 1 << 24, /* bytes of a frame */
};

/* Why a function cannot be probed; the parent has the message. */
enum probesites_trouble {
	PROBESITES_USABLE,
	PROBESITES_STEPPED_IN, /* no instruction at its beginning is emulated */
	PROBESITES_NO_OUT, /* it never returns */
	PROBESITES_MANY_OUT,
	PROBESITES_NO_CODE, /* the file has no code there, or too much to read */
	PROBESITES_REFUSED, /* the kernel puts no probe on one of the instructions */
	PROBESITES_TROUBLES,
};

enum probesites_future { PROBESITES_NO_FUTURE, PROBESITES_FUTURE_1ST, PROBESITES_FUTURE_2ND }; /* which argument it is */

struct probesites {
	uint64_t address, size;
	uint64_t in;      /* offset in the file */
	uint32_t depth;   /* bytes pushed before it, by which the stack pointer is lower there */
	uint32_t out_count;
	uint64_t out[PROBESITES_OUT];
	uint32_t link;    /* arm64: so far below the stack pointer of the first instruction it saves x30; 0 = nowhere */
	uint32_t zero;
	uint32_t future;  /* enum probesites_future */
	uint32_t state;   /* offset of the state in the future */
	uint32_t trouble; /* enum probesites_trouble */
	uint32_t pattern; /* index of the pattern that it matched */
	uint8_t code[8];  /* its first bytes, to be shown */
	char name[PROBESITES_NAME]; /* readable, cut */
};

struct probesites_info {
	uint32_t count, zero;
	uint64_t functions;                  /* in the file's tables */
	uint64_t matched[PROBESITES_PATTERNS]; /* for each pattern, also beyond the array's size */
	struct probesites list[PROBESITES_FUNCTIONS];
};

/*
 * How well a readable name matches a pattern: 0 = not, 1 = somewhere in its path, 2 = at its end. Parts
 * within <> do not count where there is a path around them, so that neither drop_in_place<f> nor a generic
 * argument matches f. A * in the pattern stands for any text: "Task*::run" fits "Task<A,B>::run", and what
 * is before the * may be within <>, where the type of a function often is.
 */
int probesites_fit(const char *name, const char *pattern);
/* text: patterns, each with a NUL at its end, n bytes in all. The best matches of each are taken. */
int probesites_find(struct elf *elf, const char *text, size_t n, struct probesites_info *ret, struct err *err);
/* Reads the code of one function of x86-64; part of probesites_find, -ENOTSUP in a build without a disassembler. */
int probesites_read(const struct elf *elf, struct probesites *d, uint64_t cold, uint64_t cold_size, bool may_be_future,
		    struct err *err);
/* Takes an end of the function, at an address, for those that read its code. */
void probesites_add_out(const struct elf *elf, struct probesites *d, uint64_t address);
/* Returns whether all numbers are within their bounds. Terminates the names. */
bool probesites_check(struct probesites_info *info);
/* Returns the trouble as a sentence for people: "begins with …". */
const char *probesites_trouble_text(uint32_t trouble);
