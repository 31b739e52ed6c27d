/*
 * perfdatatrace.h - the formats of tracepoints' records that a perf.data file carries (TRACING_DATA).
 *
 * The text is that of the machine that recorded: fields may lie elsewhere than here. Only those of the scheduler are kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "target/trace/tracefs.h"

struct perfdatatrace {
	VEC(struct tracefs_format) formats;
	VEC(char *) names; /* "sched_switch", of each */
};

/* Reads as many as make sense. */
void perfdatatrace_read(struct perfdatatrace *t, const void *data, size_t n);
void perfdatatrace_done(struct perfdatatrace *t);
/* By the number of the tracepoint; NULL: not known. *ret_name belongs to t. */
const struct tracefs_format *perfdatatrace_find(const struct perfdatatrace *t, uint64_t id, const char **ret_name);
/* The value of an integer field of a record; 0 where it has none. */
int64_t perfdatatrace_value(const struct tracefs_format *f, const char *name, const uint8_t *raw, size_t n);
