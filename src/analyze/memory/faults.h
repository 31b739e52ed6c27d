/*
 * faults.h - page faults and memory pressure: how many, by which function, on which part of which file.
 *
 *	struct faults f;
 *	faults_build(&f, p, &selection->options);
 *	if (f.recorded)
 *		printf("%.1f %% of the faults were served from memory\n", faults_hit_percent(&f));
 *	faults_done(&f);
 *
 * Reads the events "major-faults", "minor-faults", "major-time", "minor-time", "reclaims" and "reclaim-time"
 * with the filters of the options, but not their event.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "analyze/tree/ident.h"
#include "base/vec.h"

struct profile;
struct select_options;

struct faults_weight {
	uint64_t major, minor, major_ns, minor_ns;
	uint64_t reclaims, reclaim_ns;
};

/* A function of the program (ownfunction.h), or a marker for faults without a stack. */
struct faults_function {
	const char *name, *module; /* live as long as the table */
	struct faults_weight weight;
};

struct faults_range {
	uint64_t from, to; /* bytes of the file */
	uint64_t major;
};

/* A file, or "[heap]" and the like. */
struct faults_file {
	const char *name; /* lives as long as the profile */
	struct faults_weight weight;
	VEC(struct faults_range) ranges; /* ranges with faults, by offset, no two adjacent */
};

/* The growth of a series over the selected time. */
struct faults_series {
	const char *name, *unit; /* live as long as the profile */
	uint64_t sum;
};

struct faults {
	bool recorded;        /* was there a collector of faults? The rest is nothing without */
	bool timed;           /* are the times of faults known? */
	bool reclaims_seen, kswapd_seen;
	uint64_t duration_ns; /* of the selection */
	struct faults_weight all;
	uint64_t kswapd_wakes;  /* of the whole system and recording */
	uint64_t without_stack; /* faults that the kernel took in a thread's name, of the whole recording */
	uint64_t walked, remembered; /* stacks */
	bool no_psi, no_cgroup_psi, no_memory_events;
	VEC(struct faults_function) functions; /* most time in major faults first, then most faults */
	VEC(struct faults_file) files;         /* the same */
	VEC(struct faults_series) series;
	struct idents idents; /* owns names */
};

void faults_build(struct faults *f, const struct profile *p, const struct select_options *o);
void faults_done(struct faults *f);

/* minor · 100 / (major + minor); 100 without faults. */
double faults_hit_percent(const struct faults *f);
/* 4 KiB a major fault. */
static inline uint64_t faults_read_bytes(const struct faults *f)
{
	return f->all.major * 4096;
}
/* The sum of a series; 0 if there is none. */
uint64_t faults_series_sum(const struct faults *f, const char *name);
