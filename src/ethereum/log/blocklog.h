/*
 * blocklog.h - blocks in the log of an Ethereum node: lines in, blocks out.
 *
 * A pure parser, which knows the lines of several clients by name (clients.h) and takes a user's own
 * pattern. A line may be plain, coloured, logfmt or JSON, and wrapped by a container or the journal (logline.h). The
 * times of the log itself are not used: they are coarse and may jump. A block ends when its line was seen, and lasts as
 * long as the line says, or began when another line said so. Blocks whose lines are handed over with one time, as they
 * were read at once, share it.
 *
 * Some blocks have a second line, with exact gas ("Slow block"): both make one block, in either order. When the
 * second comes after the block was handed out, the block is handed out again, marked as amended.
 *
 * A pattern is an extended regex with named groups: (?<number>[0-9]+), and hash, txs, gas ("36.42Mgas",
 * "36,420,000"), mgas, ggas, time ("59.7ms", "1m2.5s"), ms, us, s; of a line for many blocks also first or blocks.
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
	struct block block;      /* the number is always known; of a group the last */
	uint64_t first, count;   /* a line for many blocks: the first of them, and how many; else the number and 1 */
	char hash[67];           /* "0x…", "" = not known */
	uint64_t lasted_ns;      /* as the line says; 0 = it does not say */
	bool inserted;           /* the block was built here: lasted_ns is only its insertion, not its time */
	bool own, slow;          /* the lines that told of it: the client's own, the one about a slow block */
	bool timed;              /* start is known; else it is the end */
	bool told;               /* by the line itself, not by others around it */
	bool again;              /* this number was there before with another hash: the chain was reorganized */
	bool amends;             /* all about a block that was handed out before, with what has been learnt since */
	uint64_t order;          /* blocks that were handed out before this one: the name of the block that is amended */
	uint64_t start_ns, end_ns;
	uint64_t seen_ns;        /* when its line was; the end, but for blocks that share a time */
	const char *client;      /* NULL = not known: lines about slow blocks are the same for several clients */
};

typedef void blocklog_fn(void *context, const struct blocklog_block *b);

struct blocklog_counts {
	uint64_t blocks;       /* handed out, a group as one */
	uint64_t groups;       /* of them lines for many blocks */
	uint64_t inserted;     /* of them blocks that were built here, of which only the insertion is timed */
	uint64_t merged;       /* lines that told more about a block */
	uint64_t repeated;     /* reported twice, and left out */
	uint64_t reorged;      /* a number again, another block */
	uint64_t out_of_order; /* a smaller number than the one before */
	uint64_t clients;      /* changes of the client that speaks */
	uint64_t bad_lines;    /* that should be of a block, but are cut or malformed: left out */
	uint64_t bad_figures;  /* gas, transactions or a number beyond all bounds: the block goes without it */
	uint64_t bad_times;    /* durations that cannot be (none, or more than an hour): the block has no span */
	uint64_t shared;       /* several were read at once: each got a share of the time, by gas */
};

/* client: NULL = whichever speaks. pattern: a user's own, instead; NULL = none. */
int blocklog_new(const char *client, const char *pattern, blocklog_fn *fn, void *context, struct blocklog **ret,
		 struct err *err);
void blocklog_line(struct blocklog *m, const char *line, size_t n, uint64_t time_ns);
/* A line from before the time of interest: only what it says about the form of later lines is taken. */
void blocklog_prime(struct blocklog *m, const char *line, size_t n);
void blocklog_flush(struct blocklog *m);
const struct blocklog_counts *blocklog_counted(const struct blocklog *m);
void blocklog_free(struct blocklog *m); /* NULL is fine */

/* For tests and others that read such figures. "36.42Mgas", "24,443,168", "1.5G": 0 or -EINVAL. */
int blocklog_parse_count(const char *s, size_t n, uint64_t *ret);
/* "59.7ms", "1.2s", "1m2.5s", "1m 2s", "850µs": 0 or -EINVAL. */
int blocklog_parse_time(const char *s, size_t n, uint64_t *ret_ns);
