/*
 * perfdata.h - a perf.data file, or what `perf record -o -` wrote into a pipe, as a profile.
 *
 * The way of a record:
 *
 *	perfdatareader     bytes of the file or the pipe, COMPRESSED ones unpacked, as records
 *	perfdataqueue      in the order of their time: each CPU's come by themselves
 *	perfdata           what each kind of record says
 *	perfdatasample     the fields of a sample
 *	perfdataspace      processes, threads and their mappings at that time
 *	perfdatastack      the frames: call chain, LBR, or a walk over the copy of the stack with our own unwind tables
 *	perfdatasched      what the scheduler's tracepoints say, for the waits of profile/schedwaits.h
 *
 * perfdatafacts has what the header says, perfdataattr the events, perfdatatrace the formats of tracepoints,
 * perfdatamodule the files. Memory is bounded by what perf's ring buffers held at a time, and by the profile.
 *
 * Each event of the file is one of the profile, valued by the period of its samples: cpu-clock and task-clock in ns (the
 * first of them is called "cpu"), the others in counts. Little-endian files of version 2 only.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool perfdata_probe(const char *data, size_t n, bool whole);
int perfdata_import(const struct import_input *in, struct profile **ret, struct err *err);
