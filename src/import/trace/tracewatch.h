/*
 * tracewatch.h - a trace that is written while its program is recorded: when it grows, and what its last event is then.
 *
 * No event is written before it happened, so each growth says when the trace's time 0 was at the latest; the nearest of
 * many is right within a fraction of a millisecond. A thread of its own looks at the file's size, and reads its last bytes
 * when that changed.
 *
 * Life: tracewatch_start -> tracewatch_stop, which also frees it.
 */
#pragma once

#include <stdint.h>

struct err;
struct traceclock_facts;
struct tracewatch;

/* path may be made later. */
int tracewatch_start(const char *path, struct tracewatch **ret, struct err *err);
/* start_mono_ns: of the recording. Fills in what was learned of the file, and opens it: a descriptor, or a negative errno
 * with a sentence. */
int tracewatch_stop(struct tracewatch *w, uint64_t start_mono_ns, struct traceclock_facts *f, struct err *err);
