/*
 * fuzz_perfdata.c - the reader of perf.data, of files and of pipes.
 *
 * No file of the machine is opened: the paths of mappings are below a folder that is not there. What comes out must be a
 * profile whose ids lie within its tables.
 */
#include <stdlib.h>

#include "base/err.h"
#include "base/file/stream.h"
#include "import/import.h"
#include "import/perf/perfdata.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		if (s->thread >= p->threads.n || s->stack >= p->stacks.n || s->event >= p->events.n || !s->value)
			abort();
	}
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.v[i].process >= p->processes.n)
			abort();
	for (size_t i = 0; i < p->wakes.n; i++)
		if (p->wakes.v[i].thread >= p->threads.n || (p->wakes.v[i].waker != PROFILE_NONE && p->wakes.v[i].waker >= p->threads.n))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream *in = stream_of(data, size);
	struct profile *p = NULL;
	struct err err = { 0 };

	setenv("HOME", "/nonexistent", 1);
	if (!perfdata_import(&(struct import_input){ .stream = in, .name = "fuzz", .options.root = "/nonexistent" }, &p, &err))
		check(p);
	else if (!err.text[0])
		abort();
	profile_free(p);
	stream_free(in);
	return 0;
}
