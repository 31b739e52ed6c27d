/*
 * fuzz_speedscope.c - files of speedscope as profiles.
 */
#include "fuzz_web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_web("speedscope", data, size);
}
