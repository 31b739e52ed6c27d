/*
 * fuzz_metrics.c - the reader of a node's metrics, which any server may have written.
 */
#include <stdlib.h>
#include <string.h>

#include "target/memory/metrics.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct metrics m;
	bool any = false;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (!metrics_parse(text, &m))
		any = true;
	for (int i = 0; i < METRICS_KEYS; i++)
		any |= m.known[i];
	if (!any)
		abort();
	free(text);
	return 0;
}
