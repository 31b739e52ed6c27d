/*
 * fuzz_chrometrace.c - Chrome traces.
 */
#include "fuzz_web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_web("chrome-trace", data, size);
}
