/*
 * folder.h - a folder of this run's own, removed at the end with all that is in it. Each test uses its own names there.
 *
 *	cmocka_run_group_tests(tests, make_folder, remove_folder);
 */
#pragma once

#include "test.h"

#include <unistd.h>

#include "base/mem.h"

static char folder[64];

/* A path in it; caller frees. */
static inline char *in_folder(const char *name)
{
	return mem_printf("%s/%s", folder, name);
}

static inline int make_folder(void **state)
{
	snprintf(folder, sizeof(folder), "/tmp/gasflame-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

/* And works in it. */
static inline int enter_folder(void **state)
{
	return make_folder(state) || chdir(folder) ? -1 : 0;
}

static inline int remove_folder(void **state)
{
	_cleanup_free_ char *command = mem_printf("rm -rf '%s'", folder);

	return chdir("/") || system(command);
}
