/*
 * fuzz_demangle.c - linkage names: whatever they hold, the answer comes at once and is bounded.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "elf/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = mem_strndup((const char *)data, size);

	for (int flags = 0; flags <= DEMANGLE_KEEP_HASH; flags++) {
		char *text = demangle(name, flags);

		if (strlen(text) > (64 << 10) + 8)
			abort();
		free(text);
	}
	free(name);
	return 0;
}
