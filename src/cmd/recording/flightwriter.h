/*
 * flightwriter.h - writes what a flight recorder kept at an incident, in a thread of its own: recording goes on.
 *
 * One capture is written at a time, and WAITING more may wait. One that cannot be written, as the disk is full say, stays in memory and is
 * tried again; what it needs of the window stays with it. All calls are from the recorder's thread.
 *
 * Life: new -> add and poll -> finish (waits for all) -> free.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "cmd/flight/keep.h"

struct flightwriter;
struct kallsyms;
struct symbolize_options;

struct flightwriter_options { /* all is borrowed */
	const struct symbolize_options *symbols;
	const char *output, *label, *what; /* output_create_one() */
	uint64_t captures;                 /* of these the newest stay, 0 = all */
	bool json;                         /* a line on stdout for each */
	uint64_t keep_ns;
};

struct flightwriter_file {
	uint32_t module;
	int fd;
};

struct flightwriter_incident {
	char *reason;
	uint64_t time_ns;      /* since the start of the recording */
	bool last;             /* it is written however many wait */
	struct keep_snap snap;
	VEC(struct flightwriter_file) files; /* of the recording's modules */
	struct kallsyms *kernel;             /* NULL: it is read again */
};

struct flightwriter *flightwriter_new(const struct flightwriter_options *o);
/* Takes the incident over and empties it. False: too many wait; it is forgotten. */
bool flightwriter_add(struct flightwriter *w, struct flightwriter_incident *i);
/* Says what was written, begins with the next. */
void flightwriter_poll(struct flightwriter *w);
/* Writes all that waits, each tried once more. The exit code: EXIT_ERROR if one was not written; else as the last is fit to read. */
int flightwriter_finish(struct flightwriter *w);
void flightwriter_free(struct flightwriter *w); /* after finish, or where nothing was added; NULL is fine */
uint64_t flightwriter_written(const struct flightwriter *w);
uint64_t flightwriter_waiting(const struct flightwriter *w);
/* CPU time of the thread, so far. */
uint64_t flightwriter_cpu_ns(const struct flightwriter *w);
/* From a signal handler: goes without names that are not found yet. */
void flightwriter_hurry(void);
