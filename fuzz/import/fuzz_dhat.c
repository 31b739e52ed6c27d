/*
 * fuzz_dhat.c - the reader of DHAT's JSON.
 *
 * What it accepts must weigh no more than fits 63 bits, have stacks, threads and events that are there, and be shown as text.
 */
#include "heapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	heapfile_fuzz(data, size, dhat_probe, dhat_import);
	return 0;
}
