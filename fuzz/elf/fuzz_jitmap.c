/*
 * fuzz_jitmap.c - perf-PID.map and jitdump files, which the target writes as it likes.
 *
 * The first byte chooses: 'd' a dump, anything else a map. Whatever it is, each
 * address is answered once, and only by a range that holds it; and its history
 * has more than one name, in order of time.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "elf/jit.h"

enum { ADDRESSES = 512 };

struct seen {
	unsigned times[ADDRESSES];
};

static void got(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	struct seen *s = context;

	if (index >= ADDRESSES || count > 1 || s->times[index]++)
		abort();
	if (count && (strlen(calls[0].name) > 4096 || strlen(calls[0].file) > 4096))
		abort();
}

static void past(void *context, size_t index, const struct symbols_call *calls, size_t count)
{
	if (index >= ADDRESSES || count < 2)
		abort();
	for (size_t i = 1; i < count; i++)
		if (calls[i].line <= calls[i - 1].line || !strcmp(calls[i].name, calls[i - 1].name))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	uint64_t addresses[ADDRESSES];
	struct seen seen = { 0 };
	struct jit *j;

	/* Small ones, where the corpus has its code, and some at the far end. */
	for (size_t i = 0; i < ADDRESSES; i++)
		addresses[i] = i < ADDRESSES - 16 ? i * 0x40 : UINT64_MAX - (ADDRESSES - 1 - i) * 0x40;
	j = jit_new(addresses, ADDRESSES);
	if (n && data[0] == 'd')
		jit_parse_dump(j, data + 1, n - 1, NULL);
	else if (n)
		jit_parse_map(j, (const char *)data + 1, n - 1);
	jit_resolve(j, got, &seen);
	jit_history(j, 1000000000, past, NULL);
	for (size_t i = 0; i < ADDRESSES; i++)
		if (seen.times[i] != 1)
			abort();
	jit_free(j);
	return 0;
}
