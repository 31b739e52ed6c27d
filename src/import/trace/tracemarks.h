/*
 * tracemarks.h - a Chrome trace (--marks FILE) as marks of a recording.
 *
 * Each span becomes a mark: its kind is the span's name, its thread the recording's thread of that number or name, where
 * there is one, and its nesting is that of its times on the thread. Spans that carry a block's number in their arguments
 * and make or insert blocks become blocks. A block that the recording has already, from a log or a node, takes the span's
 * times. Spans outside of the recording are counted. Of too many the longest are kept.
 *
 * The file is read once, as a stream; memory does not depend on its size. Reports nothing: the caller does, with
 * tracemarks_say().
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "import/trace/traceclock.h"
#include "import/trace/tracespans.h"

struct err;
struct profile;

enum { TRACEMARKS_MOST = 100000 }; /* marks of one trace */

struct tracemarks_result {
	struct traceclock clock;
	struct tracespans_counts counts;
	uint64_t marks;        /* in the profile now; of them: */
	uint64_t blocks;       /* and blocks that were there and took the times of a span */
	uint64_t outside;      /* not within the recording */
	uint64_t short_ones;   /* left out: there were longer ones */
	uint64_t odd;          /* things in the list that are no events */
	const char *block_name; /* of the spans that are blocks, "" = there are none; lives as long as the profile */
	struct err *broken;    /* NULL, or what is wrong with the file: the rest of it was left out */
};

/* facts: of the clock; those of the file are looked up here. Marks are changed from first_mark on only: the capture has
 * those before. -ENODATA: there is no event, or no clock. broken: room for what is wrong with the file. */
int tracemarks_add(struct profile *p, int fd, const struct traceclock_facts *facts, size_t first_mark, struct err *broken,
		   struct tracemarks_result *ret, struct err *err);
/* Is something wrong with it: unbalanced, malformed? */
bool tracemarks_troubled(const struct tracemarks_result *r);
/* A sentence for people, without its full stop. */
void tracemarks_say(const struct tracemarks_result *r, const char *name, struct buf *out);
