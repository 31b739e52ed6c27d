/*
 * fuzz_maps.c - the reader of /proc/PID/maps.
 *
 * A process chooses the names of the files that it maps. What comes out must be
 * ordered within itself, and no more than the lines that went in.
 */
#include <stdlib.h>
#include <string.h>

#include "target/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct proc_maps maps;
	size_t lines = 0, bad = proc_maps_parse((const char *)data, size, &maps);

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	if (maps.list.n + bad > lines + 1)
		abort();
	for (size_t i = 0; i < maps.list.n; i++) {
		const struct proc_mapping *m = &maps.list.v[i];

		if (m->start >= m->end || !m->path || strlen(m->path) > size)
			abort();
	}
	proc_maps_done(&maps);
	return 0;
}
