/*
 * blocklog.h - blocks in the log of an Ethereum node: lines in, blocks out.
 *
 * A pure parser, which knows the lines of several clients by name (clients.h) and takes a user's own
 * pattern. Colours and the JSON of a container's log are stripped. The times of the log itself are not used:
 * they are coarse and may jump. A block ends when its line was seen, and lasts as long as the line says, or began
 * when another line said so. Blocks whose lines are handed over with one time, as they were read at once, share it.
 *
 * A pattern is an extended regex with named groups: (?<number>[0-9]+), and hash, txs, gas ("36.42Mgas",
 * "36,420,000"), mgas, time ("59.7ms", "1m2.5s"), ms, us, s.
 *
 *	r = blocklog_new("reth", NULL, got_block, context, &m, &err);
 *	blocklog_line(m, line, n, time_ns);
 *	blocklog_flush(m);	// when nothing came for a while: some blocks have more than a line
 *	blocklog_free(m);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/block.h"

struct err;
struct blocklog;

struct blocklog_block {
	struct block block;      /* the number is always known */
	char hash[67];           /* "0x…", "" = not known */
	bool timed;              /* start is known; else it is the end */
	bool told;               /* by the line itself, not by others around it */
	bool again;              /* this number was there before with another hash: the chain was reorganized */
	uint64_t start_ns, end_ns;
	uint64_t seen_ns;        /* when its line was; the end, but for blocks that share a time */
	const char *client;
};

typedef void blocklog_fn(void *context, const struct blocklog_block *b);

struct blocklog_counts {
	uint64_t blocks;
	uint64_t repeated;     /* reported twice, and left out */
	uint64_t reorged;      /* a number again, another block */
	uint64_t out_of_order; /* a smaller number than the one before */
	uint64_t bad_lines;    /* that should be of a block, but are cut or malformed: left out */
	uint64_t bad_times;    /* durations that cannot be: the block has no span */
	uint64_t shared;       /* several were read at once: each got a share of the time, by gas */
};

/* client: NULL = whichever speaks first. pattern: a user's own, instead; NULL = none. */
int blocklog_new(const char *client, const char *pattern, blocklog_fn *fn, void *context, struct blocklog **ret,
		 struct err *err);
/* Changes the line. */
void blocklog_line(struct blocklog *m, char *line, size_t n, uint64_t time_ns);
void blocklog_flush(struct blocklog *m);
const struct blocklog_counts *blocklog_counted(const struct blocklog *m);
void blocklog_free(struct blocklog *m); /* NULL is fine */

/* For tests and others that read such figures. "36.42Mgas", "24,443,168", "1.5G": 0 or -EINVAL. */
int blocklog_parse_count(const char *s, size_t n, uint64_t *ret);
/* "59.7ms", "1.2s", "1m2.5s", "850µs": 0 or -EINVAL. */
int blocklog_parse_time(const char *s, size_t n, uint64_t *ret_ns);
/* Colours out, and a line of a container's log as the line that it holds; its new length. */
size_t blocklog_plain(char *line, size_t n);
