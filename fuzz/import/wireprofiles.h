/*
 * wireprofiles.h - what the fuzzers of pprof and OTLP share: what was read holds together, is written in both formats, and is
 * read again.
 */
#pragma once

#include <stdlib.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/file/stream.h"
#include "base/file/unpack.h"
#include "export/export.h"
#include "import/import.h"
#include "import/pprof/pprof.h"
#include "profile/profile.h"

static inline void expect(bool good)
{
	if (!good)
		abort();
}

typedef int import_fn(const struct import_input *in, struct profile **ret, struct err *err);

/* No file is opened: paths of the input are below a folder that is not there. */
static inline struct profile *read_once(const void *data, size_t size, import_fn *import)
{
	struct stream *in = stream_of(data, size);
	struct profile *p = NULL;

	if (import(&(struct import_input){ .stream = in, .name = "x", .options.root = "/nonexistent" }, &p, NULL))
		expect(!p);
	stream_free(in);
	return p;
}

static inline void check(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++)
		expect(p->samples.v[i].event < p->events.n && p->samples.v[i].thread < p->threads.n && p->samples.v[i].stack < p->stacks.n);
	for (size_t i = 1; i < p->stacks.n; i++)
		expect(p->stacks.v[i].parent < i && p->stacks.v[i].frame < p->frames.n);
	for (size_t i = 0; i < p->frames.n; i++)
		expect((p->frames.v[i].module == PROFILE_NONE || p->frames.v[i].module < p->modules.n) &&
		       (uint64_t)p->frames.v[i].first_line + p->frames.v[i].line_count <= p->lines.n);
}

static inline void write_again(const struct profile *p, const char *format, import_fn *import)
{
	struct selection sel;
	struct quality q;
	struct buf out = { 0 };
	struct profile *again;

	if (selection_make(p, &(struct select_options){ 0 }, &sel, NULL))
		return;
	quality_measure(&q, p, &sel);
	if (!export_find(format)->write(&(struct export_job){ p, &sel, &q, { .every_event = true } }, &out, NULL)) {
		again = read_once(out.data, out.n, import);
		/* Only an empty one has nothing to come back. */
		expect(again || !p->samples.n);
		if (again)
			check(again);
		profile_free(again);
	}
	buf_done(&out);
	quality_done(&q);
	selection_done(&sel);
}

static inline void try_format(const uint8_t *data, size_t size, import_fn *import)
{
	struct profile *p = read_once(data, size, import);

	if (!p)
		return;
	check(p);
	write_again(p, "pprof", pprof_import);
	write_again(p, "otlp", otlp_import);
	profile_free(p);
}
