/*
 * blockmarks.h - blocks as marks of the recording, from the node's log and its JSON-RPC, while it is recorded.
 *
 * A log is followed in a thread of its own, so that the times of its lines are right whatever the session does;
 * another one asks the node, which may take its time, or never answer. Blocks from the log have spans; what the
 * node says names them and gives gas and transactions exactly. Without a log a block is a moment: when the node
 * was first seen to have it. Where the function that makes blocks is probed (span.c), its spans are the blocks', and
 * log and node say which is which (blockmatch.h).
 *
 * Life: blockmarks_open (reads nothing yet) -> blockmarks_start -> blockmarks_step, often -> blockmarks_finish ->
 * blockmarks_close. It needs no BPF. What went wrong is counted in the profile as "marks.…" and said once, and the recording
 * goes on.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct err;
struct blockmarks;
struct profile;

struct blockmarks_options {
	const char *log;     /* a file, a pipe, or journal:UNIT; NULL = none */
	int log_fd;          /* instead, if log is set: a pipe, which becomes the mark's; -1 = none */
	const char *client;  /* whose lines; NULL = whoever speaks */
	const char *pattern; /* a user's own instead; NULL = none */
	const char *rpc;     /* address, NULL = none */
	bool sparing;        /* a node that does not tell of its blocks is not asked before the next one is due (blockpace.h) */
	bool late;           /* their times may change at the end: no block enters the profile before */
};

struct span;

int blockmarks_open(const struct blockmarks_options *o, struct blockmarks **ret, struct err *err);
int blockmarks_start(struct blockmarks *m, struct err *err);
/* Appends the blocks that are known by now to the profile, whose time 0 is start_mono_ns. */
void blockmarks_step(struct blockmarks *m, struct profile *p, uint64_t start_mono_ns);
/* Spans of a block's function will come: blocks wait for theirs. */
void blockmarks_expect_spans(struct blockmarks *m);
/* The same for spans that come up to minutes later, in marker files: only where no others are expected. */
void blockmarks_expect_late_spans(struct blockmarks *m);
bool blockmarks_wants_late_spans(const struct blockmarks *m);
/* Adds a span. kind and thread are the profile's: a span without a block becomes a mark of that kind. */
void blockmarks_add_span(struct blockmarks *m, const struct span *s, uint32_t kind, uint32_t thread);
/* Ends it: what is not answered within a second goes without. Counters into the profile. */
void blockmarks_finish(struct blockmarks *m, struct profile *p, uint64_t start_mono_ns);
void blockmarks_close(struct blockmarks *m); /* NULL is fine */
