/*
 * tracespans.h - spans out of the events of a Chrome trace: beginnings are joined with their ends.
 *
 * B and E nest on their thread, b and e are joined by id and name across threads, X is a span by itself, n is a moment,
 * M names a thread. An end without a beginning, a beginning that an outer end passed over and one that never ended are
 * counted. Bounded, whatever the events say. No I/O, no clock: times are the trace's.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/block.h"
#include "base/map.h"
#include "import/trace/traceevents.h"

struct tracespans;

struct trace_span {
	uint64_t start_ns, end_ns; /* equal: a moment */
	uint32_t name;             /* of tracespans_name() */
	uint32_t thread;           /* of tracespans_thread() */
	struct block block;
};

struct trace_thread {
	uint64_t pid, tid;
	char name[64]; /* "" = it has none */
};

struct tracespans_counts {
	uint64_t events, spans, moments;
	uint64_t ends;    /* without a beginning */
	uint64_t begins;  /* that an outer end passed over */
	uint64_t open;    /* begun and not ended so far */
	uint64_t other;   /* of kinds that are no spans: log lines, counters, flows */
	uint64_t odd;     /* without a time, or that end before they begin */
	uint64_t beyond;  /* more threads, or more under way, than are remembered */
	uint64_t last_ns; /* the greatest time of all */
};

typedef void tracespans_fn(void *context, const struct trace_span *s);

struct tracespans *tracespans_new(tracespans_fn *fn, void *context);
void tracespans_take(struct tracespans *t, const struct trace_event *e);
const char *tracespans_name(const struct tracespans *t, uint32_t name);
size_t tracespans_threads(const struct tracespans *t);
const struct trace_thread *tracespans_thread(const struct tracespans *t, size_t i);
const struct tracespans_counts *tracespans_counted(const struct tracespans *t);
void tracespans_free(struct tracespans *t); /* NULL is fine */
