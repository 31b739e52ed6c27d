/*
 * xlayertrace.h - blocks of X Layer's trace.log (xlayer-trace-monitor): the times at which a node began and ended each.
 *
 * A line of CSV for each event, with 23 fields; of them the 8th is the event's number, the 12th its time in milliseconds since
 * 1970, the 15th the block's number, the 16th its hash:
 *	X Layer,0xab…,,okx-defi-xlayer-egseqz-pro,X Layer,,196,15032,xlayer_seq_begin_block,,,1790000000123,,,4711,0xab…,,,,,,,
 * A sequencer writes 15032 when it begins to build a block and 15036 when it has; a node that gets its blocks writes 15060
 * when it has received one and 15062 when it has inserted it. The file is written by the buffer, and the beginning of a block
 * may come after its end: lines are joined by number, and their own times count. Pure; bounded.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xlayertrace;

struct xlayertrace_block {
	uint64_t number;
	uint64_t start_wall_ns, end_wall_ns; /* right within a millisecond */
	bool built;    /* here; else it was received and inserted */
	char hash[67]; /* "0x…", "" = not known */
};

struct xlayertrace_counts {
	uint64_t lines, blocks;
	uint64_t bad;    /* lines that are cut or have numbers that are none */
	uint64_t alone;  /* beginnings and ends that were dropped without the other */
};

typedef void xlayertrace_fn(void *context, const struct xlayertrace_block *b);

struct xlayertrace *xlayertrace_new(xlayertrace_fn *fn, void *context);
/* One line without its newline. False: it is of another log. */
bool xlayertrace_line(struct xlayertrace *x, const char *line, size_t n);
/* Is this the beginning of such a log? */
bool xlayertrace_probe(const char *data, size_t n);
const struct xlayertrace_counts *xlayertrace_counted(const struct xlayertrace *x);
void xlayertrace_free(struct xlayertrace *x); /* NULL is fine */
