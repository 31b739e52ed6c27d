/*
 * fuzz_callgrind.c - call graphs of callgrind, and the stacks that are made of them.
 *
 * Whatever the calls are, the samples weigh what the lines cost.
 */
#include "../common/sound.h"
#include "base/err.h"
#include "base/file/stream.h"
#include "base/file/unpack.h"
#include "import/frames.h"
#include "import/import.h"
#include "import/text/callgrind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_sums(const struct callgrind *c, const struct profile *p)
{
	uint64_t sums[CALLGRIND_EVENTS] = { 0 };

	for (size_t i = 0; i < p->samples.n; i++)
		sums[p->samples.v[i].event] += p->samples.v[i].value;
	for (size_t i = 0; i < c->event_count; i++)
		sound(sums[i] == c->total[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct profile *p = NULL;
	struct callgrind c;
	struct err err = { 0 };
	struct stream *in;
	bool good;

	if (unpack_probe(data, size))
		return 0;
	callgrind_probe((const char *)data, size, size % 2);
	in = stream_of(data, size);
	good = !callgrind_read(&c, in, &err);
	sound(good || err.text[0]);
	stream_free(in);
	in = stream_of(data, size);
	if (!callgrind_import(&(struct import_input){ .stream = in, .name = "x" }, &p, NULL)) {
		sound(good);
		sound_profile(p);
		check_sums(&c, p);
		profile_free(p);
	}
	stream_free(in);
	callgrind_done(&c);
	return 0;
}
