/*
 * chrometrace.h - Chrome traces as profiles: spans of a thread become stacks with their self time, whatever program wrote them.
 *
 * The events come from the reader that marks come from (import/trace/traceevents.h): a list, or an object with "traceEvents";
 * both may be cut off. B, E and X are stacks of the event "spans"; b and e, which belong to no thread, are marks, and so are
 * spans that carry a block's number. Samples (P, "samples" with "stackFrames") are the event "samples"; profiles of V8 within
 * the trace are the event "time". Flows, counters and moments are counted as left out. A trace that stops being JSON somewhere
 * is read up to there, if something came before.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct err;
struct import_input;
struct profile;

bool chrometrace_probe(const char *data, size_t n, bool whole);
int chrometrace_import(const struct import_input *in, struct profile **ret, struct err *err);
