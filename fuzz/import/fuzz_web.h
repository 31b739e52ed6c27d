/*
 * fuzz_web.h - what the fuzzers of src/import/web share: whatever was read is a profile whose ids are all in their tables, and
 * whose values add up.
 */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "import/import.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_expect(bool good)
{
	if (!good)
		abort();
}

static void fuzz_check(const struct profile *p)
{
	uint64_t total[16] = { 0 };

	for (size_t i = 1; i < p->stacks.n; i++)
		fuzz_expect(p->stacks.v[i].parent < i && p->stacks.v[i].frame < p->frames.n);
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		fuzz_expect(s->thread < p->threads.n && s->event < p->events.n && s->stack < p->stacks.n && s->value);
		fuzz_expect(s->time_ns <= p->duration_ns);
		if (s->event < 16)
			fuzz_expect(!__builtin_add_overflow(total[s->event], s->value, &total[s->event]));
	}
	for (size_t i = 0; i < p->threads.n; i++)
		fuzz_expect(p->threads.v[i].process < p->processes.n);
	for (size_t i = 0; i < p->frames.n; i++)
		fuzz_expect(p->frames.v[i].module == PROFILE_NONE || p->frames.v[i].module < p->modules.n);
	for (size_t i = 0; i < p->marks.n; i++)
		fuzz_expect(p->marks.v[i].start_ns <= p->marks.v[i].end_ns);
}

static int fuzz_web(const char *format, const uint8_t *data, size_t size)
{
	struct stream *in = stream_of(data, size);
	struct profile *p = NULL;
	struct err err = { 0 };

	import_probe((const char *)data, size, size % 2);
	if (!import_find(format)->read(&(struct import_input){ .stream = in, .name = "x" }, &p, &err)) {
		fuzz_check(p);
		profile_free(p);
	} else {
		fuzz_expect(*err.text);
	}
	stream_free(in);
	return 0;
}
