/*
 * fuzz_massif.c - the reader of valgrind's massif.
 *
 * What it accepts must weigh no more than fits 63 bits, have stacks, threads and events that are there, and be shown as text.
 */
#include "heapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	heapfile_fuzz(data, size, massif_probe, massif_import);
	return 0;
}
