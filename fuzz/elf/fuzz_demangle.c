/*
 * fuzz_demangle.c - linkage names: whatever they hold, the answer comes at once and is bounded. So is the name of a task
 * that is made of one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/taskname.h"
#include "elf/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_task(const char *name)
{
	char *names[] = { taskname_of_function(name), taskname_of_type(name), taskname_of_arguments(name) };

	if (!names[0] != (taskname_rank(name) == TASKNAME_NOTHING))
		abort();
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		/* Its parts are joined by "::", up to three of them. */
		if (names[i] && strlen(names[i]) > strlen(name) + 6)
			abort();
		free(names[i]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = mem_strndup((const char *)data, size);

	for (int flags = 0; flags <= DEMANGLE_KEEP_HASH; flags++) {
		char *text = demangle(name, flags);

		if (strlen(text) > (64 << 10) + 8)
			abort();
		check_task(text);
		free(text);
	}
	check_task(name);
	free(name);
	return 0;
}
