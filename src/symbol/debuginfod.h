/*
 * debuginfod.h - debug files from the servers that DEBUGINFOD_URLS names. Only when the user asks.
 */
#pragma once

#include <stddef.h>

struct cache;

/*
 * The debug file of a build-id as a descriptor for reading, or -errno: -ENOENT when no server has it. It
 * is kept in the cache under name, where there is a cache. why gets a sentence when the user should know
 * more than that it is not there.
 */
int debuginfod_fetch(struct cache *c, const char *build_id, const char *name, char *why, size_t why_size);
