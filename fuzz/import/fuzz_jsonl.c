/*
 * fuzz_jsonl.c - samples as lines of JSON.
 *
 * What was read is sound, and what is written of it is read again as so many samples of the same weight.
 */
#include "../common/sound.h"
#include "analyze/quality.h"
#include "analyze/select.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/file/unpack.h"
#include "export/export.h"
#include "import/import.h"
#include "import/text/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct profile *read_bytes(const void *data, size_t n, struct err *err)
{
	struct stream *in = stream_of(data, n);
	struct profile *p = NULL;

	if (jsonl_import(&(struct import_input){ .stream = in, .name = "x" }, &p, err))
		sound(err->text[0]);
	stream_free(in);
	return p;
}

static uint64_t sum(const struct profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		sum += p->samples.v[i].value;
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct profile *p, *again;
	struct selection s;
	struct buf out = { 0 };

	if (unpack_probe(data, size))
		return 0;
	jsonl_probe((const char *)data, size, size % 2);
	p = read_bytes(data, size, &err);
	if (!p)
		return 0;
	sound_profile(p);
	if (!selection_make(p, &(struct select_options){ .idle = true }, &s, NULL)) {
		struct export_job job = { .profile = p, .selection = &s, .options = { .every_event = true } };

		if (!jsonl_write(&job, &out, NULL)) {
			again = read_bytes(out.data, out.n, &err);
			sound(again && again->samples.n == p->samples.n && sum(again) == sum(p));
			profile_free(again);
		}
		selection_done(&s);
	}
	buf_done(&out);
	profile_free(p);
	return 0;
}
