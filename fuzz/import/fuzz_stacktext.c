/* fuzz_stacktext.c - stacks of bpftrace, DTrace and bcc: whatever the text is, all three read it, and ids are valid. */
#include <stdlib.h>
#include <string.h>

#include "base/file/stream.h"
#include "import/import.h"
#include "import/text/printed.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool good)
{
	if (!good)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int (*const readers[])(const struct import_input *, struct profile **, struct err *) = { bpftrace_import, dtrace_import,
													bcc_import };

	import_probe((const char *)data, size, size % 2);
	for (size_t i = 0; i < sizeof(readers) / sizeof(readers[0]); i++) {
		struct stream *in = stream_of(data, size);
		struct profile *p = NULL;

		if (!readers[i](&(struct import_input){ .stream = in, .name = "x" }, &p, NULL)) {
			for (size_t k = 0; k < p->samples.n; k++)
				expect(p->samples.v[k].event < p->events.n && p->samples.v[k].thread < p->threads.n &&
				       p->samples.v[k].stack < p->stacks.n && p->samples.v[k].value);
			profile_free(p);
		}
		stream_free(in);
	}
	return 0;
}
