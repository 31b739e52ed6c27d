/*
 * fuzz_heapv2.c - the reader of jemalloc's heap dumps, and the profile that is made of one.
 *
 * A dump comes from the target's own folders. Its stacks must lie within its addresses, and the profile weigh what
 * the stacks do.
 */
#include <stdlib.h>

#include "import/jemalloc/heapdumps.h"
#include "profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* No file is opened: paths of the dump are below a folder that is not there. */
	const struct heapdumps_options o = { .root = "/nonexistent" };
	struct heapdumps d = { 0 };
	struct profile *p = NULL;
	uint64_t live = 0, heap = 0;

	if (heapdumps_add_text(&d, "a.1.2.i3.heap", (const char *)data, size, 1, NULL))
		return 0;
	for (size_t i = 0; i < d.list.v[0].data.stacks.n; i++) {
		const struct heapv2 *h = &d.list.v[0].data;
		const struct heapv2_stack *s = &h->stacks.v[i];

		if ((uint64_t)s->first + s->depth > h->addresses.n)
			abort();
		live += heapv2_unbias(h->interval, s->live).bytes;
	}
	if (heapdumps_profile(&d, &o, &p, NULL))
		abort();
	for (size_t i = 0; i < p->samples.n; i++)
		if (!p->samples.v[i].event)
			heap += p->samples.v[i].value;
	if (heap != live)
		abort();
	heapdumps_strip(p);
	profile_free(p);
	heapdumps_done(&d);
	return 0;
}
