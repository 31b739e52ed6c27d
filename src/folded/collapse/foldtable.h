/*
 * foldtable.h - folded stacks counted from the text of `perf script`, by one thread.
 *
 *	struct foldtable *t = foldtable_new(&options);
 *	foldtable_add(t, text, n, event);	// as often as there is text; each piece ends after an empty line
 *	foldtable_join(t, other);	// what another thread counted
 *	foldtable_write(t, put, context);
 *	foldtable_free(t);
 *
 * Memory grows with the number of different stacks and names, not with the text: lines of frames are remembered in a
 * table of fixed size.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "folded/collapse/perfline.h"

struct err;
struct foldtable;

struct foldtable_options {
	struct perfline_options line;
	bool pid, tid;     /* in the name of the thread; tid: both */
	bool source_lines; /* a line with the place in the source follows each frame */
	/* Frames of a line with what was inlined there: appends names, outermost first, separated by semicolons, and
	 * returns true; false: the line's own names are used. May be NULL. Called by several threads at once. java: as for
	 * perfline_take_name(). */
	bool (*inlined)(void *context, const struct perfline_frame *f, bool java, struct buf *b);
	void *context;
};

struct foldtable_counts {
	uint64_t samples, filtered; /* filtered: of another event */
	uint64_t unknown_lines;     /* that are neither a sample's beginning nor a frame */
};

struct foldtable *foldtable_new(const struct foldtable_options *o);
void foldtable_free(struct foldtable *t); /* NULL is fine */
/* event: only samples of it, and those that have none; NULL: all. A sample that no empty line ends is left out, as Perl does. */
void foldtable_add(struct foldtable *t, const char *text, size_t n, const char *event);
/* Adds what the other one has, which is as it was. */
void foldtable_join(struct foldtable *t, const struct foldtable *other);
/* The same with other names: replace appends those of one, separated by semicolons, and returns true; false: it stays. */
void foldtable_join_renamed(struct foldtable *t, const struct foldtable *other,
			    bool (*replace)(void *context, const char *name, struct buf *b), void *context);
/* The lines "a;b;c 12", sorted by their bytes, in pieces. A negative result of put ends it and is returned. */
int foldtable_write(struct foldtable *t, int (*put)(void *context, const char *text, size_t n), void *context);
struct foldtable_counts foldtable_counts(const struct foldtable *t);

/* The event of the first sample that has one, in s: "" if none has. */
struct perfline_text foldtable_first_event(const char *text, size_t n);
