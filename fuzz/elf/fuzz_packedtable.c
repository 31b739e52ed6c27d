/*
 * A packed unwind table from hostile bytes: the child's answer, or a file of the cache. One that is taken must
 * be one that we would load, and every look-up in it must stay within it.
 */
#include <stdlib.h>

#include "elf/worker/packedtable.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unwind_table t;

	if (!packedtable_open((const char *)data, size, &t))
		return 0;
	if (t.page_count && !unwind_valid(&t))
		abort();
	for (uint32_t i = 0; i < t.page_count && i < 64; i++)
		for (uint64_t at = 0; at < 4096; at += 0x3f)
			unwind_find(&t, (t.first_page + i) << UNWIND_PAGE_SHIFT | at);
	unwind_done(&t);
	return 0;
}
