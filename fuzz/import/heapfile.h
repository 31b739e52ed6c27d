/* heapfile.h - one input for a reader of heaps: what comes out must hold together, and make a heap over time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "analyze/memory/heapseries.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "import/heap/heapfiles.h"
#include "import/import.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What rose less what fell is never less than nothing, and its peak is the event "peak". */
static inline void heapfile_check_series(const struct profile *p, uint64_t peak_bytes, bool has_freed)
{
	struct heapseries h;

	if (!heapseries_make(&h, p, &(struct select_options){ 0 }, NULL) && has_freed && h.peak_bytes != peak_bytes)
		abort();
	heapseries_done(&h);
}

static inline void heapfile_check(const struct profile *p)
{
	uint32_t peak = profile_find_event(p, "peak", NULL);
	uint64_t sums[16] = { 0 };

	if (!p->finished || p->events.n > 16)
		abort();
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		if (s->event >= p->events.n || s->thread >= p->threads.n || s->stack >= p->stacks.n ||
		    __builtin_add_overflow(sums[s->event], s->value, &sums[s->event]) || sums[s->event] > INT64_MAX)
			abort();
	}
	for (size_t i = 0; i < p->frames.n; i++)
		if (p->frames.v[i].module != PROFILE_NONE && p->frames.v[i].module >= p->modules.n)
			abort();
	heapfile_check_series(p, peak == PROFILE_NONE ? 0 : sums[peak], profile_find_event(p, "freed", NULL) != PROFILE_NONE);
}

static inline void heapfile_fuzz(const uint8_t *data, size_t size, bool (*probe)(const char *, size_t, bool),
				 int (*read)(const struct import_input *, struct profile **, struct err *))
{
	struct stream *in = stream_of(data, size);
	struct profile *p = NULL;
	struct err err = { 0 };

	probe((const char *)data, size, true);
	/* No file is opened: paths are below a folder that is not there. */
	if (read(&(struct import_input){ .stream = in, .name = "x", .options.root = "/nonexistent" }, &p, &err)) {
		if (p || !*err.text)
			abort();
	} else {
		heapfile_check(p);
		profile_free(p);
	}
	stream_free(in);
}
