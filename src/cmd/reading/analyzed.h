/*
 * analyzed.h - a capture in memory with all that a page may want of it: names, causes, account, waits, verdict.
 */
#pragma once

#include <stdbool.h>

#include "analyze/subsystem/classify.h"
#include "analyze/wait/account.h"
#include "analyze/wait/pattern.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "analyze/wait/verdict.h"
#include "analyze/wait/waits.h"
#include "cmd/cmd.h"
#include "export/export.h"

struct capture_parts;
struct capture_span;
struct err;
struct profile;

/* Where to look for names, what waits mean, and which functions are of which subsystem. */
struct analyzed_options {
	struct option_list symbols, patterns, subsystems;
	bool debuginfod, no_cache;
	/* Of a long capture samples are joined: all (captureio_read_sums()), or those outside blocks (captureio_read_blocks()). */
	bool sums, blocks;
	/* With blocks: samples of a long capture are read a part at a time (struct analyzed, parts). */
	bool parts;
	/* With sums: samples of this time are not joined (capture_read_span()); NULL = none. */
	const struct capture_span *span;
	/* A capture for a first picture (capture_read_coarse()), with so many nodes of its tree; names that are missing are not
	 * looked for. 0 = all of it. */
	size_t coarse;
};

struct analyzed {
	struct profile *profile;
	struct capture_parts *parts; /* NULL: all samples are in the profile; else their sums are */
	struct patterns patterns;
	struct causes causes;
	struct subsystems table;
	struct classifier subsystems;
	struct selection selection;
	struct quality quality;
	struct account account;
	struct waits waits;
	struct verdict verdict;
	struct export_job job; /* of the above */
};

/* All of a capture, nothing filtered: analyzed_read() and analyzed_judge(). */
int analyzed_load(const char *path, const struct analyzed_options *o, struct analyzed **ret, struct err *err);
/* The profile with its names, patterns, causes and subsystems. */
int analyzed_read(const char *path, const struct analyzed_options *o, struct analyzed **ret, struct err *err);
/* Of the rest only what a picture needs. */
int analyzed_outline(struct analyzed *l, struct err *err);
/* The rest. */
int analyzed_judge(struct analyzed *l, struct err *err);
void analyzed_free(struct analyzed *l); /* NULL is fine */
