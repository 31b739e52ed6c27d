/*
 * fuzz_pprof.c - profiles of pprof. What is read is written and read again: see wireprofiles.h.
 */
#include "wireprofiles.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	pprof_probe((const char *)data, size, size % 2);
	/* What is packed may be much larger: tests/unit looks at that. */
	if (!unpack_probe(data, size))
		try_format(data, size, pprof_import);
	return 0;
}
