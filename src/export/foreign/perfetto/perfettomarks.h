/*
 * perfettomarks.h - blocks and phases on tracks of a Perfetto trace: slices of one track must not overlap, marks may.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct export_job;

struct perfettomark {
	uint64_t begin_ns, end_ns; /* within the selected range; the same: a moment */
	uint32_t mark, track;
};

struct perfettomark_track {
	uint32_t kind;    /* string of the profile */
	uint32_t thread;  /* that its marks are about, PROFILE_NONE = none */
	uint64_t last_ns; /* where its last mark ends */
};

struct perfettomarks {
	VEC(struct perfettomark) list; /* by kind, thread and time */
	VEC(struct perfettomark_track) tracks;
};

void perfettomarks_make(struct perfettomarks *m, const struct export_job *job);
void perfettomarks_done(struct perfettomarks *m);
