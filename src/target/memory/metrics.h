/*
 * metrics.h - jemalloc's statistics in the metrics that a node offers (Prometheus' text format).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum metrics_key {
	METRICS_ALLOCATED, /* asked for by the program */
	METRICS_ACTIVE,    /* pages with allocations in them */
	METRICS_METADATA,  /* jemalloc's own */
	METRICS_RESIDENT,  /* at most in memory: active, metadata, and free pages not given back */
	METRICS_MAPPED,
	METRICS_RETAINED,  /* address space kept without memory */
	METRICS_KEYS,
};
extern const char *const metrics_names[METRICS_KEYS];

struct metrics {
	uint64_t bytes[METRICS_KEYS];
	bool known[METRICS_KEYS];
};

/* Any name with "jemalloc" and one of the keys behind it: reth_jemalloc_active, jemalloc_active_bytes,
 * jemalloc{stat="active"}. False: there is none. */
bool metrics_parse(const char *text, struct metrics *ret);
