/*
 * fuzz_cpuprofile.c - CPU profiles of V8.
 */
#include "fuzz_web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_web("cpuprofile", data, size);
}
