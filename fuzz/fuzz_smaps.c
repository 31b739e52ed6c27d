/*
 * fuzz_smaps.c - the reader of /proc/PID/smaps, and what its mappings are taken for.
 *
 * A process chooses the names of what it maps, and where. Whatever they are, the parts add up to RSS.
 */
#include <stdlib.h>

#include "target/memory/memory.h"
#include "target/memory/smaps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory_hints hints = { .threads = 3, .exe = "/opt/node" };
	struct memory m = { 0 };
	struct smaps maps;
	uint64_t sum = 0;
	uint32_t stacks;
	uint8_t *parts;

	smaps_parse((const char *)data, size, &maps);
	vec_push(&hints.pointers, 0x7f0000001000);
	vec_push(&hints.tmpfs, 25);
	parts = memory_classify(&maps, &hints, &stacks);
	memory_sum(&maps, parts, &m);
	for (int i = 0; i < MEMORY_PARTS; i++)
		sum += m.part_bytes[i];
	if (sum != m.rss_bytes || stacks > maps.list.n || m.files.n > maps.list.n)
		abort();
	memory_done(&m);
	free(parts);
	vec_done(&hints.pointers);
	vec_done(&hints.tmpfs);
	smaps_done(&maps);
	return 0;
}
