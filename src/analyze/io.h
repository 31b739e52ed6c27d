/*
 * io.h - reads, writes and syncs: in total, by function, by file, by operation, by disk.
 *
 * Totals, functions and files are of the selected threads, times and functions. Operations (with
 * their latencies) and disks are always of the whole recording.
 *
 *	struct io_figures f;
 *	if (io_measure(&f, p, &job->selection->options))
 *		printf("%llu\n", f.all.read_bytes);
 *	io_done(&f);
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;
struct select_options;

/* Calls include those that failed. */
struct io_row {
	const char *name;   /* of a function or a file; lives as long as the figures */
	const char *module; /* functions: path of the module */
	uint64_t read_bytes, read_calls;
	uint64_t write_bytes, write_calls;
	uint64_t sync_ns, sync_calls;
	uint64_t errors;
};

/* Latencies are read from a histogram with a step for each power of two: right within a few percent where
 * the values are spread, within a factor of two at worst. */
struct io_latency {
	uint64_t p50_ns, p90_ns, p99_ns;
	uint64_t max_ns; /* none was longer */
	uint64_t count;
	const uint64_t *steps; /* 64: from 2^i to 2^(i+1) ns; of the profile, NULL = none */
};

struct io_operation {
	const char *name;
	uint64_t calls, errors, bytes, ns;
	struct io_latency latency;
};

struct io_disk {
	char *name;       /* "vda read" */
	uint64_t requests, bytes, errors, ns;
	uint64_t own_requests, own_bytes; /* issued by the target's threads themselves */
	struct io_latency latency;
};

struct io_figures {
	struct idents idents; /* owns the names */
	struct io_row all;
	uint64_t duration_ns; /* of the selection */
	bool filtered;        /* the selection leaves something out */
	bool chosen;          /* the selected event is one of I/O */
	VEC(struct io_row) functions, files; /* most bytes read and written first, then by time of sync */
	VEC(struct io_operation) operations; /* most calls first */
	VEC(struct io_disk) disks;           /* by name */
	uint64_t walked, remembered, calls_error; /* stacks of the recording; standard error of the calls of a function */
	VEC(const char *) remarks;           /* sentences about what the figures leave out */
};

/* False: I/O was not recorded, or nothing of it is selected; the figures are empty then. */
bool io_measure(struct io_figures *f, const struct profile *p, const struct select_options *o);
void io_done(struct io_figures *f);

/* The value below which a share (0 to 1) of a histogram lies. */
uint64_t io_percentile(const uint64_t counts[64], double share);
