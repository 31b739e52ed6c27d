/*
 * chromesamples.h - samples of a Chrome trace: events of the phase P, and "samples" beside the list, with stacks that are nodes
 * of "stackFrames": {"7": {"name": "work", "parent": "3"}}.
 *
 * Frames may come after the samples that refer to them: samples wait for the end of the trace.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/vec.h"

struct chromespans;
struct err;
struct webprofile;

struct chrome_sample {
	uint64_t time_ns, weight;
	uint64_t frame; /* its id, UINT64_MAX = none */
	uint32_t lane;
};

struct chrome_frame {
	uint64_t parent; /* its id, UINT64_MAX = none */
	uint32_t frame;  /* of the profile */
	uint32_t stack;  /* PROFILE_NONE = not made yet */
};

struct chromesamples {
	uint64_t first_ns; /* the earliest of all; UINT64_MAX = there is none */
	/* The rest is private. */
	VEC(struct chrome_sample) list;
	VEC(struct chrome_frame) frames;
	struct map ids; /* of frames to their index; names by a hash */
};

void chromesamples_init(struct chromesamples *s);
void chromesamples_done(struct chromesamples *s);
/* One sample, an object; a list of them; "stackFrames". */
void chromesamples_take(struct chromesamples *s, struct webprofile *w, struct chromespans *lanes, const char *text, size_t n);
void chromesamples_list(struct chromesamples *s, struct webprofile *w, struct chromespans *lanes, const char *text, size_t n);
void chromesamples_frames(struct chromesamples *s, struct webprofile *w, const char *text, size_t n);
/* Adds them to the profile. */
int chromesamples_add(struct chromesamples *s, struct webprofile *w, const struct chromespans *lanes, uint64_t zero_ns, struct err *err);
