/*
 * fuzz_heaptrack.c - the reader of heaptrack's files, interpreted and raw.
 *
 * What it accepts must weigh no more than fits 63 bits, have stacks, threads and events that are there, and be shown as text.
 */
#include "heapfile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	heapfile_fuzz(data, size, heaptrack_probe, heaptrack_import);
	return 0;
}
