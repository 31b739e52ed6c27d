/*
 * heapfind.h - the files that addresses of a heap belong to, where a recording has their paths and no more: a raw one of heaptrack.
 *
 * A file of --symbols that is called like the module is the one that ran; else the one at its path, below --root where that is given,
 * unless it is newer than the recording. Its build-id is kept, so that no other file names its addresses.
 *
 *	struct heapfind h = { .in = in, .frames = &frames };
 *	uint32_t module = heapfind_module(&h, "/usr/bin/node");
 *	heapfind_done(&h);
 */
#pragma once

#include <stdint.h>

#include "base/map.h"

struct frames;
struct import_input;
struct worker;

struct heapfind {
	const struct import_input *in;
	struct frames *frames;
	/* The rest is private. */
	struct worker *worker;
	struct map modules; /* by string of the path, 1 + module */
};

uint32_t heapfind_module(struct heapfind *h, const char *path);
void heapfind_done(struct heapfind *h);
