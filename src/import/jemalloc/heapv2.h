/*
 * heapv2.h - jemalloc's heap dumps, as in the file.
 *
 *	heap_v2/524288                     mean bytes between samples
 *	  t*: 2: 8192 [0: 0]               live objects: bytes [allocated so far: bytes]
 *	  t0: 2: 8192 [0: 0] main          a thread of the process; only here with its name
 *	@ 0x55e0 0x55f8 0x7f01             a stack, leaf first
 *	  t*: 1: 4096 [0: 0]
 *
 *	MAPPED_LIBRARIES:
 *	55e0-55ff r-xp ...                 /proc/PID/maps
 *
 * jeprof --raw, and our own export, have names before it, which need no files then:
 *
 *	--- symbol
 *	binary=/usr/bin/node
 *	0x55e0 outer--inner                inlined calls last; of callers the address of the call
 *	---
 *	--- heap
 *
 * Figures are sums of samples: heapv2_unbias() makes estimates of them, a stack at a time.
 * The header's total is a sum of samples, too, and must not be shown. The form of jemalloc
 * 3, "heap profile: 1: 4096 [0: 0] @ heap_v2/524288", is read as well.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"
#include "target/proc.h"

struct err;

struct heapv2_pair {
	uint64_t objects, bytes;
};

struct heapv2_stack {
	uint32_t first, depth; /* into addresses */
	struct heapv2_pair live, all;
};

/* Of a mapping, "" = unknown. */
struct heapv2_build {
	char hex[64];
};

/* The process's own symbol for an address; inlined calls innermost first, one after the other. */
struct heapv2_name {
	uint64_t address;
	uint32_t string;
};

struct heapv2 {
	uint64_t interval;          /* 0: every allocation was seen */
	VEC(uint64_t) addresses;    /* as in the file: those of callers are return addresses */
	VEC(struct heapv2_stack) stacks;
	struct proc_maps maps;
	bool has_maps;
	bool cut;                   /* it ends in the middle of something, which is left out */
	bool accumulated;           /* some stack has its bytes allocated so far */
	size_t bad_lines;           /* that are none of these */
	bool symbolized;            /* it has its names: files are not looked at */
	/* Of heappprof.h only, but for the names. */
	bool file_addresses;        /* an address minus the start of its mapping is relative to the file */
	VEC(struct heapv2_build) builds; /* of maps */
	VEC(struct heapv2_name) names;   /* in no order */
	struct strtab strings;
};

bool heapv2_probe(const char *data, size_t n, bool whole);
/* -EINVAL: no heap_v2. A truncated file gives its complete entries. heapv2_done() in any case. */
int heapv2_parse(const char *text, size_t n, struct heapv2 *ret, struct err *err);
void heapv2_done(struct heapv2 *h);

/* Estimates the allocations that the samples of one stack represent. */
struct heapv2_pair heapv2_unbias(uint64_t interval, struct heapv2_pair seen);
