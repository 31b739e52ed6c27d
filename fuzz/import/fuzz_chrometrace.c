/*
 * fuzz_chrometrace.c - Chrome traces, and CPU profiles of V8 by themselves.
 */
#include "fuzz_web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_web("cpuprofile", data, size);
	return fuzz_web("chrome-trace", data, size);
}
