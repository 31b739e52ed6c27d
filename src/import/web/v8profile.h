/*
 * v8profile.h - CPU profiles of V8: those that node and Chrome save (.cpuprofile), and the pieces of them in a Chrome trace.
 *
 * Each sample lasts until the next one: its value is time, "(idle)", "(program)" and "(garbage collector)" included.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct err;
struct import_input;
struct jsontext;
struct profile;
struct webprofile;

struct v8node {
	uint64_t parent; /* its id; UINT64_MAX = none */
	uint32_t frame;  /* PROFILE_NONE = "(root)" */
	uint32_t stack;  /* PROFILE_NONE = not made yet */
};

struct v8profile {
	uint64_t pid, tid, id;   /* for who reads pieces */
	uint64_t start_ns, end_ns; /* 0 = not known */
	VEC(struct v8node) nodes;
	struct map ids;          /* id of a node to its index */
	VEC(uint64_t) samples;   /* ids of nodes */
	VEC(int64_t) deltas_ns;  /* from the sample before */
};

void v8profile_done(struct v8profile *v);
/* Reads the members of an object that has them: nodes, samples, timeDeltas, startTime, endTime, and "cpuProfile" with these. */
void v8profile_take(struct v8profile *v, struct webprofile *w, struct jsontext *c);
/* Adds its samples; times are as they are less zero_ns. -EINVAL: nodes are their own callers. */
int v8profile_add(struct v8profile *v, struct webprofile *w, uint32_t thread, uint64_t zero_ns, struct err *err);

bool cpuprofile_probe(const char *data, size_t n, bool whole);
int cpuprofile_import(const struct import_input *in, struct profile **ret, struct err *err);
