/*
 * fuzz_heappprof.c - the reader of heaps in pprof's format, and the profile that is made of one.
 */
#include <stdlib.h>

#include "import/jemalloc/heapdumps.h"
#include "import/jemalloc/heappprof.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No file is opened: paths of the dump are below a folder that is not there. */
	const struct heapdumps_options o = { .root = "/nonexistent" };
	struct heapdump dump = { .loaded = true };
	struct heapdumps d = { 0 };
	struct profile *p = NULL;

	if (heappprof_read((const char *)data, size, &dump.data, NULL)) {
		heapv2_done(&dump.data);
		return 0;
	}
	for (size_t i = 0; i < dump.data.stacks.n; i++)
		if ((uint64_t)dump.data.stacks.v[i].first + dump.data.stacks.v[i].depth > dump.data.addresses.n)
			abort();
	if (dump.data.builds.n > dump.data.maps.list.n)
		abort();
	vec_push(&d.list, dump);
	if (heapdumps_profile(&d, &o, &p, NULL))
		abort();
	heapdumps_strip(p);
	profile_free(p);
	heapdumps_done(&d);
	return 0;
}
