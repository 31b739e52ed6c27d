/*
 * inlined.h - collapse --inline: the functions that were inlined at an address of perf script's text, from the file's debug
 * information.
 *
 *	struct inlined *i = inlined_new(&line, context);
 *	options.inlined = inlined_take;		// while the text is counted: names that stand for the frames
 *	r = inlined_resolve(i, &err);		// all at once
 *	foldtable_join_renamed(table, counted, inlined_replace, i);
 *	inlined_free(i);
 *
 * A frame keeps the names of its line where the file is not there, says nothing about the address, or has another function there: then
 * the address is not one of the file's own. Memory grows with the number of different frames.
 */
#pragma once

#include <stdbool.h>

struct buf;
struct err;
struct inlined;
struct perfline_frame;
struct perfline_options;

/* context: "name:file.c:12". */
struct inlined *inlined_new(const struct perfline_options *o, bool context);
void inlined_free(struct inlined *i); /* NULL is fine */
/* Both for foldtable.h. inlined_take() may be called by several threads at once. */
bool inlined_take(void *inlined, const struct perfline_frame *f, bool java, struct buf *b);
bool inlined_replace(void *inlined, const char *name, struct buf *b);
int inlined_resolve(struct inlined *i, struct err *err);
