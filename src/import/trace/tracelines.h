/*
 * tracelines.h - X Layer's trace.log as the events of a trace: a span for each block, by the wall clock.
 *
 * The counterpart of traceevents.h for a log of lines (target/log/xlayertrace.h). Streams as that does.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "import/trace/traceevents.h"

struct tracelines;

struct tracelines *tracelines_new(traceevents_fn *fn, void *context);
void tracelines_feed(struct tracelines *t, const char *data, size_t n);
/* Lines that are cut or of another log. */
uint64_t tracelines_odd(const struct tracelines *t);
void tracelines_free(struct tracelines *t); /* NULL is fine */
