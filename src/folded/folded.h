/*
 * folded.h - reads folded stacks: "outer;inner;leaf 123", a line a stack.
 *
 * The last number is the count and may have decimals; a second number before it makes the line a
 * difference (before, after). Frames may hold anything but a semicolon. Any other line is counted and
 * skipped, as flamegraph.pl does.
 *
 *	struct stacklist l;
 *	stacklist_init(&l);
 *	r = folded_read(stream, &(struct folded_options){ 0 }, &l, &err);	// as often as there are files
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;
struct stacklist;
struct stream;

struct folded_options {
	bool reverse;      /* frames from the leaf on */
	bool first_apart;  /* the outermost frame is no node: see struct stacklist_line */
};

/* Appends what the stream has, until its end. */
int folded_read(struct stream *in, const struct folded_options *o, struct stacklist *l, struct err *err);

/* Do the first bytes of a file look like folded stacks? whole: there is no more. */
bool folded_probe(const char *data, size_t n, bool whole);

/*
 * Reads folded stacks as a profile. The outermost frame is taken for the thread's
 * name, which it is in most folded stacks, so that graphs look as those of
 * flamegraph.pl. "_[k]" and "_[i]" after a name mark the kernel's and inlined
 * functions, "_[j]", "_[1]" and "_[0]" those compiled or interpreted at run time
 * (modules "[jit]", "[interpreted]"); after a frame "-" all are the kernel's. The event is "samples", its unit "count", or a decimal part of it
 * ("count/100") where counts have decimals (docs/decisions/0006). Of two counts the
 * first is an event of its own, "before".
 */
int folded_profile(const struct import_input *in, struct profile **ret, struct err *err);
