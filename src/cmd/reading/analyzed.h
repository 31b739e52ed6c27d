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

struct err;
struct profile;

/* Where to look for names, what waits mean, and which functions are of which subsystem. */
struct analyzed_options {
	struct option_list symbols, patterns, subsystems;
	bool debuginfod, no_cache;
	/* Of a long capture samples are joined: all (captureio_read_sums()), or those outside blocks (captureio_read_blocks()). */
	bool sums, blocks;
};

struct analyzed {
	struct profile *profile;
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
/* The rest. */
int analyzed_judge(struct analyzed *l, struct err *err);
void analyzed_free(struct analyzed *l); /* NULL is fine */
