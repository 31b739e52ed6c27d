/*
 * blocks.h - the marks of blocks, and the wall time of each by cause.
 *
 * The path of a block is the marked thread, or where the mark has none the thread that was most on the CPU
 * within the span. Where that thread waited for another one (for a lock, a condition, a pipe, for work), and
 * its waker was recorded, the time is attributed to what the waker did meanwhile, and so on. Each moment of
 * the span is counted once: the parts of a block sum to its wall time. Where the path is an async task's (record -e task) it
 * goes on with what that task awaited: with the task that woke it, and what its thread did.
 *
 * Waits and the run queue are as recorded; CPU time is the rest, split by the samples of the path. Time
 * without samples is unknown.
 *
 *	struct blocks b;
 *	r = blocks_make(&b, p, &causes, NULL, NULL, &err);
 *	for (size_t i = 0; i < b.rows.n; i++)
 *		printf("%s %llu\n", b.rows.v[i].name, b.rows.v[i].wall_ns);
 *	blocks_done(&b);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/task/wakekind.h"
#include "analyze/wait/cause.h"
#include "analyze/tree/crate.h"
#include "analyze/tree/ident.h"
#include "base/block.h"
#include "base/vec.h"

struct classifier;
struct err;

enum block_part {
	BLOCK_OWN, BLOCK_DEPENDENCY, BLOCK_STD, BLOCK_KERNEL, /* on the CPU; the allocator is of std */
	BLOCK_UNNAMED, /* on the CPU, in code without a name, or between two samples */
	BLOCK_QUEUE, BLOCK_LOCK, BLOCK_DISK, BLOCK_FAULT, BLOCK_NETWORK,
	BLOCK_WAIT,    /* conditions, pipes, sleep */
	BLOCK_IDLE,    /* nothing to do */
	BLOCK_UNKNOWN,
	BLOCK_PARTS,
};
/* "own", "run-queue": in JSON and CSV; "own code", "run queue": for people. */
const char *block_part_key(enum block_part part);
const char *block_part_name(enum block_part part);
static inline bool block_part_is_cpu(enum block_part part)
{
	return part <= BLOCK_UNNAMED;
}

/* A function, a crate or a subsystem, and its share of a part. */
struct block_item {
	enum block_part part;
	const char *name;
	const char *under; /* the nearest own function above one that is not own; NULL = none */
	const char *file;  /* the file that was read or written there, with -e fault or io; NULL = unknown */
	uint64_t ns;
};

/* Most first. */
struct block_items {
	struct block_item *v;
	size_t n, capacity;
};

/* An await of a task on the path of a block. */
struct block_hop {
	const char *type;   /* of the task that awaited */
	const char *waker;  /* the type of the task that ended it, or the name of a thread; NULL = neither is known */
	bool by_task;       /* the waker is a task */
	enum wakekind kind; /* what was awaited */
	uint64_t ns;        /* of the block's time; awaits of deeper hops are within it */
	uint32_t depth;     /* 0 = of the task that made the block */
};

struct block_row {
	const char *name;         /* of the mark; lives as long as the profile */
	uint32_t mark;            /* into the profile's */
	struct block block;
	uint64_t start_ns, wall_ns;
	uint32_t thread;          /* where the path ends, PROFILE_NONE: none was seen */
	bool summed;              /* old rows of a long recording: no wait is followed to its waker */
	bool split;               /* false: a moment, nothing was recorded then, or it is shorter than what was summed: parts are all 0 */
	uint64_t ns[BLOCK_PARTS]; /* sum to wall_ns */
	uint64_t allocator_ns;    /* of BLOCK_STD: in the allocator */
	uint64_t followed_ns;     /* of it on other threads than that one */
	uint64_t parallel_ns;     /* on the CPU beside the path, on any thread */
	VEC(struct block_hop) hops; /* awaits on the path, each before those within it; the latest first, and not all of many */
	struct block_items functions; /* the nearest that is no library's (ownfunction.h), of waits and of the CPU */
	struct block_items crates;    /* of the CPU */
	struct block_items subsystems;       /* on the CPU and waiting; all that is known of the path once */
	struct block_items subsystem_totals; /* the same with what they call */
	bool typical;             /* of the middle half, with which slow ones are compared */
	bool slow;
	bool by_gas;              /* slow, and its gas explains that */
	char *reason;             /* of a slow one; else NULL */
};

struct blocks {
	VEC(struct block_row) rows; /* by start */
	uint64_t median_ns;         /* of those with a split */
	size_t split, slow, typical;
	uint64_t typical_ns, typical_gas; /* the mean of the typical ones; gas 0: not known of all */
	struct block_items crates;  /* on the CPU along all paths */
	struct block_items subsystems; /* along all paths, all parts of one together */
	char *difference;           /* what slow ones have that typical ones have not; NULL: no slow ones */
	/* The rest is private. */
	struct idents idents;
	struct crates names;
};

struct blocks_span {
	uint64_t start_ns, end_ns;
};

/* Where the samples come from, when the profile has not all of them at once: a long recording has more than fit. */
struct blocks_source {
	/* Replaces the samples of the profile by those in the first spans; returns how many of the spans it read, 1 at least,
	 * or a negative errno with a sentence. Spans are by time, and none touches the next. */
	int (*read)(void *context, const struct blocks_span *spans, size_t n, struct err *err);
	void *context;
	const uint64_t *rows; /* by event: how many samples there are in all */
};

/* own: globs of the user's own crates, as of crates_init(). subsystems: of the profile, NULL = rows have none. -ENODATA: no
 * mark is a block. */
int blocks_make(struct blocks *b, const struct profile *p, struct causes *c, const char *const *own,
		struct classifier *subsystems, struct err *err);
/* The same with samples from a source; NULL: they are all in the profile. */
int blocks_make_from(struct blocks *b, const struct profile *p, const struct blocks_source *source, struct causes *c,
		     const char *const *own, struct classifier *subsystems, struct err *err);
void blocks_done(struct blocks *b);

/* Marks the slow ones and says why; blocks_make() has done it. */
void blocks_compare(struct blocks *b);
