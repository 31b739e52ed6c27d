/*
 * fuzz_firefox.c - profiles of the Firefox profiler as profiles of ours.
 */
#include "fuzz_web.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_web("firefox", data, size);
}
