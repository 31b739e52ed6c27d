/*
 * fuzz_perfscript.c - perf script's text: a profile whose ids are all valid; what is exported of it is read again, and the export of that
 * has as many samples.
 */
#include <stdlib.h>
#include <string.h>

#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/file/stream.h"
#include "export/export.h"
#include "import/import.h"
#include "import/text/perfscript.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

static struct profile *read_once(const void *data, size_t n)
{
	struct stream *in = stream_of(data, n);
	struct profile *p = NULL;

	if (perfscript_import(&(struct import_input){ .stream = in, .name = "x" }, &p, NULL))
		p = NULL;
	stream_free(in);
	return p;
}

static void check(const struct profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++) {
		const struct profile_sample *s = &p->samples.v[i];

		expect(s->event < p->events.n && s->thread < p->threads.n && s->stack < p->stacks.n && s->value);
	}
	for (size_t i = 0; i < p->threads.n; i++)
		expect(p->threads.v[i].process < p->processes.n);
	for (size_t i = 0; i < p->frames.n; i++)
		expect(p->frames.v[i].module == PROFILE_NONE || p->frames.v[i].module < p->modules.n);
	for (size_t i = 0; i < p->wakes.n; i++)
		expect(p->wakes.v[i].waker == PROFILE_NONE || p->wakes.v[i].waker < p->threads.n);
}

static bool export(const struct profile *p, struct buf *out)
{
	struct selection selection;
	struct quality quality;
	int r = selection_make(p, &(struct select_options){ 0 }, &selection, NULL);

	if (r)
		return false;
	quality_measure(&quality, p, &selection);
	r = perfscript_write(&(struct export_job){ p, &selection, &quality, { .every_event = true } }, out, NULL);
	quality_done(&quality);
	selection_done(&selection);
	return !r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p = read_once(data, size), *again;
	struct buf out = { 0 };

	perfscript_probe((const char *)data, size, size % 2);
	if (!p)
		return 0;
	check(p);
	if (export(p, &out)) {
		again = read_once(out.data, out.n);
		expect(again);
		check(again);
		profile_free(again);
	}
	buf_done(&out);
	profile_free(p);
	return 0;
}
