/*
 * benchrun.h - runs a program once and measures it: its time, its resources, and its output.
 *
 * The program gets no input; both of its outputs come to us through one pipe, in every run alike, so that
 * reading them costs the same whether they are shown or not. Ctrl-C reaches it by itself.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;

enum { BENCHRUN_TAIL = 4096 };

struct benchrun_result {
	uint64_t start_wall_ns, wall_ns;
	uint64_t user_ns, system_ns;
	uint64_t minor_faults, major_faults;
	uint64_t voluntary_switches, involuntary_switches;
	uint64_t peak_rss_bytes; /* of the largest of its processes */
	int status;              /* as of waitpid */
	struct buf tail;         /* the end of its output */
};

typedef void benchrun_output_fn(void *context, const char *text, size_t n);

/* Negative: it could not be started. The caller calls buf_done() on ret->tail in any case. */
int benchrun(char **argv, benchrun_output_fn *output, void *context, struct benchrun_result *ret,
	     struct err *err);
