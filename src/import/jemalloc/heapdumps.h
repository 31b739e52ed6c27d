/*
 * heapdumps.h - heap dumps (heapv2.h) of one or more processes, in order, and as a profile.
 *
 * Dumps of one process are a series, never a sum: each shows the same heap at another time.
 * The profile has these events, all in bytes, with the estimated number of objects as count:
 *
 *	heap            alive in the last dump of each process
 *	alloc           allocated up to then, freed or not (where prof_accum was on)
 *	growth, shrunk  heap less that of the base, or of the first dump: where it is more, where less
 *	rise, fall      the same from each dump to the next, at its time; the first dump is a rise from
 *nothing: what rose less what fell up to any time is the heap then
 *
 * and the series "heap.live". Its frames have addresses, and no names yet; when they have,
 * heapdumps_strip() takes jemalloc's own frames off the leaves.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"
#include "import/jemalloc/heapv2.h"

struct err;
struct import_input;
struct profile;
struct worker;

struct heapdump {
	char *path;
	uint64_t pid, sequence; /* as its name says: <prefix>.<pid>.<sequence>.<kind><n>.heap; else 0 and its
				   place */
	bool numbered;          /* the name says */
	uint64_t wall_ns;       /* when it was written, 0 = unknown */
	bool loaded; /* its data are here: of files one after the other, for there may be thousands */
	struct heapv2 data;
};

/* Reads its file, if it was not read yet. */
int heapdump_load(struct heapdump *d, struct err *err);
void heapdump_unload(struct heapdump *d);

struct heapdumps {
	VEC(struct heapdump) list;
};

/* path: a file, or a folder with files *.heap. They are read when a profile is made of them. */
int heapdumps_add(struct heapdumps *d, const char *path, struct err *err);
/* From memory; text is kept by the caller. */
int heapdumps_add_text(struct heapdumps *d, const char *path, const char *text, size_t n, uint64_t wall_ns,
		       struct err *err);
void heapdumps_done(struct heapdumps *d);
/* By process and number; files without one stay as they came. */
void heapdumps_order(struct heapdumps *d);
/* selection: "all", "latest", "last:N" (of each process), or numbers "3,7,12": those in the file names, or
 * positions from 1. Call it after ordering. */
int heapdumps_select(struct heapdumps *d, const char *selection, struct err *err);

typedef void heapdumps_keep_fn(void *context, uint32_t module, int fd);
struct heapdumps_options {
	const struct heapdump *base;  /* loaded; NULL: the first of each process */
	const char *root;             /* the dumps' paths are below this folder; NULL: / */
	const char *const
		*symbols; /* files, or folders of them, for modules not at their path; NULL-terminated */
	pid_t pid;                    /* that runs and wrote them, 0 = none */
	struct worker *worker;        /* reads the files' headers; NULL: it is made */
	/* Gets each file that was opened; may be NULL. */
	heapdumps_keep_fn *keep;
	void *context;
};
int heapdumps_profile(struct heapdumps *d, const struct heapdumps_options *o, struct profile **ret,
		      struct err *err);
/* Moves each sample to the nearest caller that is not the allocator's. */
void heapdumps_strip(struct profile *p);
/* Is the profile made of dumps? Two such are not added up. */
bool heapdumps_made(const struct profile *p);

/* For the table of formats. */
int heapdumps_import(const struct import_input *in, struct profile **ret, struct err *err);
