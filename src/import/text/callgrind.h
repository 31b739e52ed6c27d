/*
 * callgrind.h - the profile format of callgrind and cachegrind, as a call graph and as stacks.
 *
 * A file has for each function what it cost itself, line by line, and for each of its calls how often it was made and what that
 * cost with everything below. It has no stacks: callgrind_stacks() estimates them. What is exact and what is not:
 *
 *	exact      the cost of each function and line itself, in each event; who called whom, and where
 *	estimated  which part of a function's cost belongs to which of the ways that lead to it: the same part as of the calls to
 *	           it, by their inclusive cost, whatever it is called with (gprof's assumption)
 *	folded     recursion: functions that call each other in a circle are on a stack once each, in the order of the fewest
 *	           calls from the one that was entered
 *
 * Units that a division leaves over are kept: what a function cost is cut at the partial sums of its callers' parts.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct err;
struct import_input;
struct profile;
struct stream;

enum { CALLGRIND_EVENTS = 64 }; /* at most */

/* All names are of callgrind.strings; 0 = unknown. */
struct callgrind_function {
	uint32_t name, file, object;
};

/* What a line of a function cost, or a call in it with everything below. The costs are at place * events of the graph. */
struct callgrind_cost {
	uint32_t function;
	uint32_t callee; /* of calls */
	uint32_t file, line;
};

/* The calls of one thread, or of all. */
struct callgrind_graph {
	uint32_t thread; /* "1", "" = the file tells none apart */
	uint32_t pid;
	VEC(struct callgrind_function) functions;
	VEC(struct callgrind_cost) self, calls;
	VEC(uint64_t) self_costs, call_costs;
};

struct callgrind {
	struct strtab strings;
	uint32_t command, creator;
	uint32_t units[CALLGRIND_EVENTS];  /* of events; 0 = a count */
	uint32_t events[CALLGRIND_EVENTS];
	size_t event_count;
	VEC(struct callgrind_graph) graphs;
	uint64_t total[CALLGRIND_EVENTS];  /* of self costs */
	uint64_t stated;                   /* what the file says of the first event's; 0 = nothing */
	uint64_t ignored;                  /* lines that are none of the format's */
};

/* callgrind_done() in any case. Sentences of errors name the line. */
int callgrind_read(struct callgrind *c, struct stream *in, struct err *err);
void callgrind_done(struct callgrind *c);
/* Adds the samples of one graph, to a thread of the profile; event i is event first + i of it. */
struct frames;
int callgrind_stacks(const struct callgrind *c, const struct callgrind_graph *g, struct frames *frames, uint32_t thread,
		     uint32_t first_event, struct err *err);

/* For the table of formats. */
bool callgrind_probe(const char *data, size_t n, bool whole);
int callgrind_import(const struct import_input *in, struct profile **ret, struct err *err);

/* The function that gasflame writes above all others, so that each has a caller. */
#define CALLGRIND_ROOT "[all]"
/* How it writes the unit of an event: "# Unit of cpu: ns". */
#define CALLGRIND_UNIT "# Unit of "
