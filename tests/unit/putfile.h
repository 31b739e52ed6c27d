/*
 * putfile.h - small files for tests that read folders.
 */
#pragma once

#include <stdio.h>

static inline void put(const char *folder, const char *name, const char *content)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(content, f);
	fclose(f);
}
